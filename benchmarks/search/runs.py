"""Whole runs of the graph by every search method, with the built-in agents, on a GPU: equal budgets, several seeds, a bench's report.

Usage: python -m benchmarks.search.runs OUT [SUITE] [--methods a,b] [--budget 32] [--seeds 3] [--memory off] [--processes N] [--seconds S]

Graph, planner, coder, reviewer and memory are the product's; `benchmarks.lab.lab` stands for the evaluator, since all sources are our own
coder's: times are measured, but without walls, battery and bracket. A source that several methods come to is judged once. OUT holds a
bench's rows and report and can be gone on with by the same command; OUT/lab.jsonl holds every judgement. Exit status 75: time was up.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import shlex
import sys
from multiprocessing.process import BaseProcess
from pathlib import Path

from benchmarks.lab.lab import Lab
from benchmarks.lab.pool import LabPool
from graphs.run.settings import RunSettings
from graphs.search import METHODS
from graphs.search.protocol import SearchSettings
from kernelwright.bench.files import BenchFolder
from kernelwright.bench.header import Header, read_header
from kernelwright.bench.merging import gather
from kernelwright.bench.pages import write_report
from kernelwright.bench.running import Bench
from kernelwright.bench.settings import MEMORY_ARMS, BenchSettings
from tools.hardware import detect_sheet, load_sheet
from tools.problems.suite import open_suite, shard
from tools.records import Budget

BASELINE = "random"
"""The method that the others are compared with."""
OPERATORS = Path(__file__).parents[2] / "data" / "operators"
TIME_IS_UP = 75
STOP_S = 20.0
"""What is kept of the time for ending and for the report."""


def main() -> None:
    """Run what is missing, or as much as fits, and report."""
    given = _arguments()
    sheet = load_sheet("h200") if given.cpu else detect_sheet()
    if sheet is None:
        sys.exit("There is no GPU with a hardware sheet here.")
    # the baseline first: a bench compares the others with its first arm
    methods = sorted(given.methods.split(","), key=lambda name: name != BASELINE)
    suite = open_suite(given.suite)
    settings = BenchSettings(
        suite=str(given.suite),
        kind=suite.kind,
        run=RunSettings(
            target=sheet.name,
            budget=Budget(evaluations=given.budget),
            search_settings=SearchSettings(batch=given.batch, patience=0),
            counters="never",
            embedder="hashing",
        ),
        searches=tuple(methods),
        memories=(given.memory,),
        seeds=given.seeds,
    )
    given.out.mkdir(parents=True, exist_ok=True)
    lab = Lab(given.out / "lab.jsonl", sheet.name, device="cpu" if given.cpu else "cuda", compilers=given.compilers)
    header = read_header(shlex.join(["python", "-m", "benchmarks.search.runs", *sys.argv[1:]]))
    context = multiprocessing.get_context("spawn")
    count = min(given.processes, len(suite.items))
    work = (given.out, settings, header, lab.address, lab.title, given.seconds)
    processes: list[BaseProcess] = [context.Process(target=_shard, args=(f"{place}/{count}", *work)) for place in range(1, count + 1)]
    try:
        for process in processes:
            process.start()
        for process in processes:
            process.join()
    finally:
        for process in processes:
            process.terminate()
        lab.close()
    rows = gather([given.out])
    if not given.cpu:
        # an interpreter's times are no figures
        write_report(rows, given.out)
    print(f"{given.out / 'report.md'}: {len(rows.rows)} of {len(methods) * given.seeds * len(suite.items)} runs")
    ended = {process.exitcode for process in processes}
    raise SystemExit(0 if ended == {0} else TIME_IS_UP if ended <= {0, TIME_IS_UP} else 1)


def _shard(word: str, out: Path, settings: BenchSettings, header: Header, address: str, title: str, seconds: float) -> None:
    """In a process of its own: do one shard's runs."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    folder = BenchFolder(out, word)
    folder.claim(settings, header, resume=True)
    items = shard(open_suite(Path(settings.suite)).items, word)
    bench = Bench(settings, items, folder, LabPool(address, title), in_flight=2, code=header.code)
    whole = asyncio.run(bench.run(max(1.0, seconds - STOP_S) if seconds else 0.0))
    sys.exit(0 if whole else TIME_IS_UP)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("suite", nargs="?", type=Path, default=OPERATORS)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--budget", type=int, default=32, help="evaluations a run")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=2, help="plans in flight")
    parser.add_argument("--memory", choices=MEMORY_ARMS, default="off")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="shards of the suite at a time")
    parser.add_argument("--compilers", type=int, default=max(2, (os.cpu_count() or 2) // 2))
    parser.add_argument("--seconds", type=float, default=0, help="stop after this long; 0 sets no limit")
    parser.add_argument("--cpu", action="store_true", help="for tests: Triton's interpreter, which says nothing of a GPU's times")
    return parser.parse_args()


if __name__ == "__main__":
    main()
