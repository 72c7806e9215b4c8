"""Judges many candidates of which a fifth hang, crash, leak, fork or fill the disk, and looks at what is left of the machine.

Usage: python -m benchmarks.soak [--candidates N] [--gpu] [--parallel N] [--timeout S] [--out FILE.json] [--markdown FILE.md]

Exit status 1 where a verdict was not the expected one or something was left behind. Static rules are off: the walls alone must hold.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import os
import random
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

from tools.evaluation import EvaluationRequest, LocalPool
from tools.evaluation.defences import Defence
from tools.hardware import detect_sheet, load_sheet
from tools.hardware.devices import first_device
from tools.problems import load_problem, small_variants
from tools.profiling.nvml import device_title

PROBLEM = """
import torch

rows = {rows}
columns = {columns}
SMALL_SIZES = [{{"rows": 3, "columns": 65}}]


def double(x):
    return x * 2


def example_inputs():
    return (torch.randn(rows, columns),)
"""

KERNEL = """
import ctypes
import os
import pathlib
import time

import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, out_ptr, n, factor, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) * factor, mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        if type(x) is torch.Tensor:
            {misdeed}
        double_kernel[(triton.cdiv(x.numel(), {block}),)](x, out, x.numel(), {factor}, BLOCK={block})
        return out
"""

MISDEEDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "hang": ("time.sleep(10_000)", ("TIMED_OUT",)),
    "spin": ("while True: pass", ("TIMED_OUT",)),
    "exception": ("raise RuntimeError('no')", ("CRASHED",)),
    "segfault": ("ctypes.string_at(0)", ("CRASHED",)),
    "exit": ("os._exit(0)", ("CRASHED",)),
    "memory": ("self.hoard = [bytearray(1 << 28) for _ in range(10_000)]", ("CRASHED",)),
    "processes": ("while True: os.fork()", ("CRASHED", "TIMED_OUT")),
    "daemon": ("os.fork() or os.setsid() or time.sleep(10_000)", ("PASS", "WRONG", "CRASHED", "TIMED_OUT")),
    "disk": ("[pathlib.Path(str(n)).write_bytes(bytes(1 << 25)) for n in range(100)]", ("CRASHED",)),
    "log": ("[print('x' * 65536) for _ in range(200)]", ("PASS",)),
}
"""What it does, and what may become of it. A process left behind is no offence by itself: it must be gone afterwards."""

ON_A_GPU: dict[str, tuple[str, tuple[str, ...]]] = {
    "gpu memory": ("self.hoard = [torch.empty(1 << 30, dtype=torch.uint8, device=x.device) for _ in range(1000)]", ("CRASHED",)),
    # CUDA reserves more than any limit of one process: what is reserved and never used does no harm
    "memory": (MISDEEDS["memory"][0], ("PASS", "CRASHED", "TIMED_OUT")),
    "gpu spin": ("torch.cuda._sleep(10**15)", ("TIMED_OUT",)),
    "illegal access": (
        "double_kernel[(64,)](x, out, x.numel() * 10**6, 2.0, BLOCK=1 << 16); torch.cuda.synchronize()",
        ("CRASHED",),
    ),
}

_HANGING_ON_A_GPU = 6
"""Candidates of each kind that end only by the clock."""

HONEST = ("pass", ("PASS",))
WRONG = ("pass", ("WRONG",))

State = dict[str, int]


def main() -> None:
    """Run, print a summary, and say by the exit status whether all was well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--candidates", type=int, default=1000)
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--parallel", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--timeout", type=float, default=0.0, help="seconds; 0 chooses 4 without a GPU and 10 with one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        summary = asyncio.run(_soak(options, Path(folder)))
    text = json.dumps(summary, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")
    if options.markdown:
        options.markdown.write_text(_page(summary))
    raise SystemExit(0 if summary["sound"] else 1)


def _plan(options: argparse.Namespace) -> list[tuple[str, str, tuple[str, ...]]]:
    """Choose kind, source and expected verdicts of each candidate: a fifth misbehave, a twentieth are wrong, the others are right."""
    chance = random.Random(options.seed)
    misdeeds = MISDEEDS | (ON_A_GPU if options.gpu else {})
    count = options.candidates // 5
    kinds = [(name, *misdeeds[name]) for name in (list(misdeeds) * (count // len(misdeeds) + 1))[:count]]
    if options.gpu:
        kinds = _few_hanging(kinds)
    kinds += [("wrong", *WRONG)] * (options.candidates // 20)
    kinds += [("honest", *HONEST)] * (options.candidates - len(kinds))
    chance.shuffle(kinds)
    made = []
    for number, (name, misdeed, expected) in enumerate(kinds):
        factor = 1.999 if name == "wrong" else 2.0
        source = KERNEL.format(misdeed=misdeed, factor=factor, block=(256, 512, 1024)[number % 3])
        made.append((name, f"{source}\n# {number}\n", expected))
    return made


def _few_hanging(kinds: list[tuple[str, str, tuple[str, ...]]]) -> list[tuple[str, str, tuple[str, ...]]]:
    """Leave out most of what ends by the clock alone: each holds the only device for its whole time limit."""
    seen: collections.Counter[str] = collections.Counter()
    kept = []
    for kind in kinds:
        seen[kind[0]] += 1
        if "TIMED_OUT" not in kind[2] or seen[kind[0]] <= _HANGING_ON_A_GPU:
            kept.append(kind)
    return kept


async def _soak(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    size = {"rows": 4096, "columns": 4096} if options.gpu else {"rows": 16, "columns": 64}
    file = folder / "double.py"
    _write(file, PROBLEM.format(**size))
    problem = load_problem(file)
    variants = small_variants(problem)
    sheet = (detect_sheet() if options.gpu else None) or load_sheet("h200")
    limit_s = options.timeout or (10.0 if options.gpu else 4.0)
    pool = LocalPool(folder / "scratch", first_device() if options.gpu else None, parallel=options.parallel)
    view = pool.weakened(frozenset([Defence.STATIC_RULES]))
    found: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    surprises: list[dict[str, object]] = []
    started = time.monotonic()
    done = 0

    async def one(number: int, name: str, source: str, expected: tuple[str, ...]) -> None:
        nonlocal done
        seconds = limit_s if "TIMED_OUT" in expected else 60.0
        request = EvaluationRequest(
            problem=problem, variants=variants, candidate=f"c{number}", source=source, target=sheet, timeout_s=seconds
        )
        evaluation = await view.evaluate(request)
        found[name][evaluation.verdict] += 1
        if evaluation.verdict not in expected:
            surprises.append({"kind": name, "verdict": evaluation.verdict, "notes": evaluation.notes[:2], "log": evaluation.log[-300:]})
        done += 1
        if done % 25 == 0:
            print(f"{done}/{options.candidates} in {time.monotonic() - started:.0f} s, {len(surprises)} surprises", flush=True)

    plan = _plan(options)

    async def honest(first: int, count: int) -> None:
        sources = [f"{KERNEL.format(misdeed='pass', factor=2.0, block=128)}\n# {first + number}\n" for number in range(count)]
        await asyncio.gather(*(one(first - number, "honest", source, ("PASS",)) for number, source in enumerate(sources)))

    # the first start the processes and fill the memory that stay: what they hold is no leak; then as the end will be looked at
    await honest(-100, options.parallel * 2)
    await honest(-200, 1)
    before = _state(folder, gpu=options.gpu)
    queue = iter(enumerate(plan))

    async def worker() -> None:
        for number, job in queue:
            await one(number, *job)

    await asyncio.gather(*(worker() for _ in range(options.parallel * 2)))
    seconds = time.monotonic() - started
    await honest(-300, 1)
    after = await _settled(folder, before, gpu=options.gpu)
    await pool.close()
    kinds = {name: dict(counts) for name, counts in sorted(found.items())}
    clean = all(after[key] <= before[key] for key in ("processes", "descriptors", "scratch_folders", "control_groups"))
    clean = clean and after.get("gpu_mib", 0) <= before.get("gpu_mib", 0) + 64
    return {
        "candidates": options.candidates,
        "seconds": round(seconds, 1),
        "per_minute": round(60 * done / seconds, 1),
        "parallel": options.parallel,
        "time_limit_s": limit_s,
        "machine": device_title(first_device() or 0) if options.gpu else f"{len(os.sched_getaffinity(0))} cores, no GPU",
        "verdicts_by_kind": kinds,
        "surprises": surprises,
        "before": before,
        "after": after,
        "peak_supervisor_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "sound": not surprises and clean,
    }


async def _settled(folder: Path, before: State, *, gpu: bool) -> State:
    """Look until nothing is more than before, for ten seconds at most: what has been killed needs a moment to go."""
    for _ in range(50):
        after = _state(folder, gpu=gpu)
        if all(after[key] <= before[key] for key in ("processes", "descriptors", "scratch_folders", "control_groups")):
            break
        await asyncio.sleep(0.2)
    return after


def _write(file: Path, text: str) -> None:
    file.write_text(text)


def _state(folder: Path, *, gpu: bool) -> State:
    """Count what could leak, of this process and all below it."""
    state = {
        "processes": len(_family()),
        "descriptors": sum(_descriptors(pid) for pid in _family()),
        "scratch_folders": sum(1 for _ in (folder / "scratch").glob("phases-*/*-*")),
        "control_groups": sum(1 for _ in Path("/sys/fs/cgroup").glob(f"**/kernelwright-{os.getpid()}-*")),
        "resident_mib": sum(_resident(pid) for pid in _family()) >> 20,
    }
    return state | ({"gpu_mib": _gpu_mib()} if gpu else {})


def _family() -> list[int]:
    """List this process and all below it."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    family = [os.getpid()]
    for pid in family:
        family += [child for child, parent in parents.items() if parent == pid]
    return family


def _descriptors(pid: int) -> int:
    try:
        return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return 0


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def _gpu_mib() -> int:
    import pynvml

    nvml: Any = pynvml
    nvml.nvmlInit()
    try:
        return int(nvml.nvmlDeviceGetMemoryInfo(nvml.nvmlDeviceGetHandleByIndex(first_device() or 0)).used) >> 20
    finally:
        nvml.nvmlShutdown()


def _page(summary: dict[str, Any]) -> str:
    lines = [
        "# Soak: many candidates, a fifth of them hostile",
        "",
        f"Written by `python -m benchmarks.soak --candidates {summary['candidates']} --parallel {summary['parallel']}` on"
        f" {summary['machine']}; static rules off, time limit {summary['time_limit_s']:g} s.",
        "",
        f"{summary['candidates']} candidates in {summary['seconds']:g} s ({summary['per_minute']:g} a minute).",
        f"Every verdict as expected: {'yes' if not summary['surprises'] else 'no'}. All well: {'yes' if summary['sound'] else 'no'}.",
        "",
        "| kind | verdicts |",
        "|---|---|",
        *(f"| {kind} | {', '.join(f'{n} {v}' for v, n in counts.items())} |" for kind, counts in summary["verdicts_by_kind"].items()),
        "",
        "| what | before | after |",
        "|---|---|---|",
        *(f"| {key.replace('_', ' ')} | {summary['before'][key]} | {summary['after'][key]} |" for key in summary["before"]),
        "",
        "Before: after a first evaluation, with the processes that stay. Resident memory counts shared pages once for each process.",
    ]
    lines += [f"* surprise: {item}" for item in summary["surprises"]]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
