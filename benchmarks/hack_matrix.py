"""Runs every hostile kernel with all defences on and with one off at a time, and writes which defence stops which kernel.

Usage: python -m benchmarks.hack_matrix [OUT_FOLDER] [--gpu] [--parallel N] [--quick]

Needs a checkout. The static rules are off throughout. Walls and limits that keep the machine safe are taken away only from kernels
whose header names them, because those do no harm. An interrupted run goes on where it was: finished rows are kept in OUT_FOLDER/NAME.jsonl.
"""

from __future__ import annotations

import argparse
import asyncio
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
    parser.add_argument("out", type=Path, nargs="?", default=Path(__file__).parents[1] / "docs" / "results")
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
        if any(not row["off"] for row in kept.rows):
            (options.out / f"{name}.md").write_text(_page(kept.rows, gpu=options.gpu))
            print(f"{options.out / name}.md")


async def _run(options: argparse.Namespace, kept: KeptRows) -> None:
    """Add what is missing to what is kept."""
    known = {(row["hack"], row["off"]) for row in kept.rows}
    # those that need a GPU first: the others can be judged elsewhere
    there = sorted(hacks(gpu=options.gpu), key=lambda hack: not hack.gpu)
    jobs = [job for hack in there for job in _jobs(hack, options) if (job[0].name, job[1]) not in known]
    places = asyncio.Semaphore(options.parallel)
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
            row |= {} if off else {"sandbox": found.sandbox}
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


def _page(rows: list[Row], *, gpu: bool) -> str:
    known = {(row["hack"], row["off"]): row for row in rows}
    there = [hack for hack in hacks(gpu=gpu) if (hack.name, "") in known]
    caught = sum(known[hack.name, ""]["caught"] for hack in there)
    twins = [known[hack.name, "twin"] for hack in there if (hack.name, "twin") in known]
    honest = sum(twin["verdict"] == "PASS" for twin in twins)
    walls = next(row["sandbox"] for row in rows if not row["off"])
    machine = device_title(first_device() or 0) if gpu else f"no GPU, {platform.processor() or platform.machine()}"
    lines = [
        f"# Hostile kernels and the defences that stop them ({'GPU' if gpu else 'no GPU'})",
        "",
        f"Written by `python -m benchmarks.hack_matrix{' --gpu' if gpu else ''}`. Machine: {machine}; sandbox: {walls}.",
        "Static rules were off in every row.",
        "",
        f"* {caught} of {len(there)} hostile kernels ended as their header says.",
        f"* {honest} of {len(twins)} honest twins passed.",
        f"* {len(rows)} evaluations.",
        "",
        "| kernel | class | with all defences | twin | gets through without |",
        "|---|---|---|---|---|",
    ]
    lines += [_line(hack, known) for hack in there]
    lines += ["", "“—”: no single defence whose absence was tried lets it through; several stand in its way.", ""]
    lines += ["## By defence", "", "| defence | kernels that get through without it |", "|---|---|"]
    for defence in Defence:
        names = [hack.name for hack in there if known.get((hack.name, defence.value), {}).get("through")]
        if names or any(row["off"] == defence.value for row in rows):
            lines.append(f"| {defence.value} | {', '.join(names) or 'none'} |")
    return "\n".join(lines) + "\n"


def _line(hack: Hack, known: dict[tuple[str, str], Row]) -> str:
    row = known[hack.name, ""]
    verdict = row["verdict"] + (f" ({row['rule']})" if row["rule"] else "")
    verdict += f", {row['provenance']}" if row["verdict"] == "PASS" else ""
    through = [defence.value for defence in Defence if known.get((hack.name, defence.value), {}).get("through")]
    twin = known.get((hack.name, "twin"), {}).get("verdict", "not run")
    alarm = "" if row["caught"] else " **NOT CAUGHT**"
    return f"| {hack.name} | {hack.attack} | {verdict}{alarm} | {twin} | {', '.join(through) or '—'} |"


if __name__ == "__main__":
    main()
