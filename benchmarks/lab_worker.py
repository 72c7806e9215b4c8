"""Answers a spool by the lab, so that any command with `--evaluator spool:SPOOL` searches the built-in coder's kernels fast on a GPU.

Usage: python -m benchmarks.lab_worker SPOOL STORE.jsonl [--compilers N] [--jobs N]; it ends at Ctrl-C. For example
  python -m benchmarks.lab_worker /tmp/spool lab.jsonl & kernelwright knowledge worth data/operators --evaluator spool:/tmp/spool
What the lab leaves out is in `benchmarks.lab`: never let it judge what a language model or anybody else wrote.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import time
from importlib.metadata import version
from pathlib import Path

from benchmarks.lab import Lab
from benchmarks.lab_pool import LabPool
from tools.hardware import detect_sheet
from tools.spool.folder import Spool
from tools.spool.identity import myself
from tools.spool.records import Announcement
from tools.spool.worker import Worker


async def serve(spool: Path, lab: Lab, target: str, jobs: int) -> None:
    """Answer until told to stop."""
    said = Announcement(
        worker=myself(),
        executor="gpu",
        target=target,
        devices=(lab.title,),
        versions={name: version(name) for name in ("torch", "triton", "numpy")} | {"python": sys.version.split()[0]},
        since=time.time(),
        written=time.time(),
    )
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await Worker(Spool(spool), LabPool(lab.address, lab.title), said, jobs=jobs).run(stop)


def main() -> None:
    """Serve."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("spool", type=Path)
    parser.add_argument("store", type=Path)
    parser.add_argument("--compilers", type=int, default=max(2, (os.cpu_count() or 2) // 2))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    given = parser.parse_args()
    sheet = detect_sheet()
    if sheet is None:
        sys.exit("There is no GPU with a hardware sheet here.")
    lab = Lab(given.store, sheet.name, compilers=given.compilers)
    try:
        asyncio.run(serve(given.spool, lab, sheet.name, given.jobs))
    finally:
        lab.close()


if __name__ == "__main__":
    main()
