"""Runs every hostile kernel with all defences on and with one off at a time, and writes which defence stops which kernel.

Usage: python -m benchmarks.evaluator.hack_matrix [OUT_FOLDER] [--gpu] [--parallel N] [--quick]

Needs a checkout. The static rules are off throughout. Walls and limits that keep the machine safe are taken away only from kernels
whose header names them, because those do no harm. An interrupted run goes on where it was: finished rows are kept in OUT_FOLDER/NAME.jsonl.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import io
import platform
import tempfile
from pathlib import Path

from benchmarks.kept_rows import KeptRows, Row
from tests.hacks.court import Court
from tests.hacks.suite import Hack, hacks
from tools.evaluation.wire.defences import GPU_ONLY, Defence
from tools.hardware.devices import first_device
from tools.profiling.nvml import device_title

JUDGING = frozenset(
    [
        Defence.FRESH_INPUTS,
        Defence.SECRET_SEEDS,
        Defence.SEVERAL_CALLS,
        Defence.DISTRIBUTIONS,
        Defence.SMALL_SIZES,
        Defence.SHAKEN_PARAMETERS,
        Defence.POISON,
        Defence.SECOND_POISON,
        Defence.INPUTS_COMPARED,
        Defence.RED_ZONES,
        Defence.CHANGED_ELEMENTS,
        Defence.OUTPUT_ABI,
        Defence.COLLECTED_AT_ONCE,
        Defence.SEPARATE_REFERENCE,
        Defence.TIGHT_LIMITS,
        Defence.WORST_ROW,
        Defence.NON_FINITE,
        Defence.PROVENANCE,
        *GPU_ONLY,
    ]
)
"""Without these a verdict may be wrong, and nothing else."""


def main() -> None:
    """Run what is not yet known, then write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, nargs="?", default=Path(__file__).parents[2] / "docs" / "results")
    parser.add_argument("--gpu", action="store_true", help="on this machine's first GPU, with the kernels that need one")
    parser.add_argument("--parallel", type=int, default=2, help="evaluations at a time")
    parser.add_argument("--quick", action="store_true", help="switch off only what a kernel's header names")
    options = parser.parse_args()
    name = "hack-matrix-gpu" if options.gpu else "hack-matrix"
    options.out.mkdir(parents=True, exist_ok=True)
    kept = KeptRows(options.out / f"{name}.jsonl")
    try:
        asyncio.run(_run(options, kept))
    finally:
        for file, text in pages(options.out).items():
            (options.out / file).write_text(text)
            print(options.out / file)


async def _run(options: argparse.Namespace, kept: KeptRows) -> None:
    """Add what is missing to what is kept."""
    known = {(row["hack"], row["off"]) for row in kept.rows}
    # those that need a GPU first: the others can be judged elsewhere
    there = sorted(hacks(gpu=options.gpu), key=lambda hack: not hack.gpu)
    jobs = [job for hack in there for job in _jobs(hack, options) if (job[0].name, job[1]) not in known]
    places = asyncio.Semaphore(options.parallel)
    machine = device_title(first_device() or 0) if options.gpu else f"no GPU, {platform.processor() or platform.machine()}"
    with tempfile.TemporaryDirectory() as folder:
        court = Court(Path(folder), first_device() if options.gpu else None, options.parallel)

        async def one(hack: Hack, off: str) -> None:
            async with places:
                found = await court.judge(hack, hostile=off != "twin", off=frozenset([Defence(off)] if off not in ("", "twin") else []))
            row: Row = {"hack": hack.name, "off": off, "verdict": found.verdict, "rule": found.rule, "provenance": found.provenance}
            row |= {
                "caught": hack.is_caught(found),
                "through": hack.gets_through(found),
                "seconds": round(found.seconds, 1),
            }
            row |= {} if off else {"sandbox": found.sandbox, "machine": machine}
            kept.add(row)
            print(f"{len(kept.rows)}/{len(known) + len(jobs)} {hack.name} without {off or 'nothing'}: {found.verdict}", flush=True)

        try:
            await asyncio.gather(*(one(*job) for job in jobs))
        finally:
            await court.close()


def _jobs(hack: Hack, options: argparse.Namespace) -> list[tuple[Hack, str]]:
    """With all defences, the honest twin, and each defence off in turn."""
    off = hack.needed if options.quick else hack.needed | (JUDGING if options.gpu else JUDGING - GPU_ONLY)
    # what needs longer than it may takes its time limit each time
    if "TIMED_OUT" in hack.verdicts:
        off = hack.needed
    return [(hack, ""), (hack, "twin"), *((hack, defence.value) for defence in Defence if defence in off)]


def pages(folder: Path) -> dict[str, str]:
    """Make the page and the file of kernels from what is kept in a folder, with and without a GPU."""
    sides = [_Side(gpu, KeptRows(folder / f"{name}.jsonl").rows) for gpu, name in ((False, "hack-matrix"), (True, "hack-matrix-gpu"))]
    known = [side for side in sides if side.hacks]
    lines = [
        "# Hostile kernels, and the defences that stop them",
        "",
        "Each hostile kernel is judged with every defence on, and with one off at a time.",
        "Beside it stands an honest twin that should pass. Static rules were off throughout.",
        "",
        "| machine | end as their header says | honest twins that pass | evaluations |",
        "|---|---|---|---|",
        *(side.summary() for side in known),
        "",
        "[Kernel by kernel](hack-matrix.csv); rows [without](hack-matrix.jsonl) and [with a GPU](hack-matrix-gpu.jsonl).",
        "",
        "## Which defence is needed",
        "",
        f"Without each of {_needed(known)} defences some kernel gets through (the file's last column). Several defences stop the others.",
        f"Tried, and needed by none alone: {', '.join(_idle(known)) or 'none'}.",
        "",
        "```",
        "python -m benchmarks.evaluator.hack_matrix [--gpu --quick]",
        "```",
        "",
        "---",
        "",
        *_walls(known),
    ]
    return {"hack-matrix.md": "\n".join(lines) + "\n", "hack-matrix.csv": _table(known)}


class _Side:
    """What is known of one machine: its rows, and the hostile kernels that were judged there."""

    def __init__(self, gpu: bool, rows: list[Row]) -> None:
        self.rows = {(row["hack"], row["off"]): row for row in rows}
        self.hacks = [hack for hack in hacks(gpu=gpu) if (hack.name, "") in self.rows]
        self.machine = next((row["machine"] for row in rows if "machine" in row), "GPU" if gpu else "no GPU")
        self.walls = next((row["sandbox"] for row in rows if not row["off"]), "")

    def summary(self) -> str:
        """Count the kernels that are caught and the twins that pass."""
        caught = sum(self.rows[hack.name, ""]["caught"] for hack in self.hacks)
        twins = [self.rows[hack.name, "twin"] for hack in self.hacks if (hack.name, "twin") in self.rows]
        honest = sum(twin["verdict"] == "PASS" for twin in twins)
        return f"| {self.machine} | {caught} of {len(self.hacks)} | {honest} of {len(twins)} | {len(self.rows)} |"

    def through(self, hack: Hack) -> list[Defence]:
        """List the defences without which a kernel gets through."""
        return [defence for defence in Defence if self.rows.get((hack.name, defence.value), {}).get("through")]


def _walls(sides: list[_Side]) -> list[str]:
    """Write what the sandbox had: on every machine, then what one had beside."""
    parts = {side.machine: side.walls.split(", ") for side in sides}
    shared = [wall for wall in next(iter(parts.values()), []) if all(wall in walls for walls in parts.values())]
    more = {machine: [wall for wall in walls if wall not in shared] for machine, walls in parts.items()}
    beside = [f"{machine}, beside: {', '.join(walls)}." for machine, walls in more.items() if walls]
    return [f"Sandbox: {', '.join(shared)}.", *beside]


def _needed(sides: list[_Side]) -> int:
    """Count the defences without which some kernel gets through on a machine."""
    return len({defence for side in sides for hack in side.hacks for defence in side.through(hack)})


def _idle(sides: list[_Side]) -> list[str]:
    """List the defences without which, wherever that was tried, no kernel gets through."""
    tried = {off for side in sides for _, off in side.rows}
    needed = {defence for side in sides for hack in side.hacks for defence in side.through(hack)}
    return [defence.value for defence in Defence if defence.value in tried and defence not in needed]


def _table(sides: list[_Side]) -> str:
    """Write a line of comma-separated values for each kernel and machine."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["machine", "kernel", "class", "with all defences", "caught", "honest twin", "gets through without"])
    for side in sides:
        for hack in side.hacks:
            row = side.rows[hack.name, ""]
            found = " ".join(word for word in (row["verdict"], row["rule"], row["provenance"] if row["verdict"] == "PASS" else "") if word)
            twin = side.rows.get((hack.name, "twin"), {}).get("verdict", "not run")
            through = "; ".join(defence.value for defence in side.through(hack))
            writer.writerow([side.machine, hack.name, hack.attack, found, "yes" if row["caught"] else "NO", twin, through])
    return text.getvalue()


if __name__ == "__main__":
    main()
