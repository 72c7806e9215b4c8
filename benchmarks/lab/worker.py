"""Answers a spool by the lab, so that any command with `--evaluator spool:SPOOL` searches the built-in coder's kernels fast on a GPU.

Usage: python -m benchmarks.lab.worker SPOOL STORE.jsonl [--compilers N] [--references N] [--judges N] [--kept-cores N] [--jobs N]
Ctrl-C and SIGTERM end it within seconds, whatever is under way: that is given back, and what was judged is in the store. For example
  python -m benchmarks.lab.worker /tmp/spool lab.jsonl & kernelwright knowledge worth data/operators --evaluator spool:/tmp/spool
What the lab leaves out is in `benchmarks.lab.lab`: never let it judge what a language model or anybody else wrote.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from benchmarks.lab.lab import Lab
from benchmarks.lab.pool import LabPool
from tools.hardware import detect_sheet
from tools.spool.folder import Spool
from tools.spool.identity import myself
from tools.spool.records import Announcement
from tools.spool.worker import Worker

LAST_S = 8.0
"""After a signal, what is left to end in order: a process that sits in a driver cannot be waited for."""


async def serve(spool: Path, lab: Lab, target: str | None, jobs: int, say: Callable[[str], None] = lambda line: None) -> None:
    """Answer until told to stop, and end the lab; without a `target` as a worker of the interpreter."""
    said = Announcement(
        worker=myself(),
        executor="gpu" if target else "interpreter",
        target=target,
        devices=(lab.title,) if target else (),
        versions={name: version(name) for name in ("torch", "triton", "numpy")} | {"python": sys.version.split()[0]},
        since=time.time(),
        written=time.time(),
    )
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, _end, stop)
    try:
        await Worker(Spool(spool), LabPool(lab.address, lab.title), said, jobs=jobs, say=say).run(stop)
    finally:
        # before the loop ends: it waits for its threads, and they for the lab
        lab.close()


def _end(stop: asyncio.Event) -> None:
    """End in order, and in any case."""
    stop.set()
    last = threading.Timer(LAST_S, os._exit, (1,))
    last.daemon = True
    last.start()


def main() -> None:
    """Serve."""
    cores = os.cpu_count() or 2
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spool", type=Path)
    parser.add_argument("store", type=Path)
    parser.add_argument("--compilers", type=int, default=max(2, cores // 2), help="processes that compile candidates")
    parser.add_argument("--references", type=int, default=4, help="processes a GPU that run torch.compile beside the judging")
    parser.add_argument("--judges", type=int, default=2, help="processes a GPU that judge: one prepares while another has the device")
    parser.add_argument("--kept-cores", type=int, default=2, help="cores a GPU that run nothing but what is being timed")
    parser.add_argument("--jobs", type=int, default=2 * cores, help="questions under way")
    parser.add_argument("--cpu", action="store_true", help="for tests: Triton's interpreter, which says nothing of a GPU's times")
    parser.add_argument("--verbose", action="store_true", help="print a line for everything that happens")
    given = parser.parse_args()
    sheet = None if given.cpu else detect_sheet()
    if sheet is None and not given.cpu:
        sys.exit("There is no GPU with a hardware sheet here.")
    target = sheet.name if sheet else "h200"
    device = "cuda" if sheet else "cpu"
    processes = {name: getattr(given, name) for name in ("compilers", "references", "judges")}
    lab = Lab(given.store, target, device=device, kept=given.kept_cores, **processes)
    say: Callable[[str], None] = (lambda line: print(line, flush=True)) if given.verbose else lambda line: None
    asyncio.run(serve(given.spool, lab, sheet.name if sheet else None, given.jobs, say))


if __name__ == "__main__":
    main()
