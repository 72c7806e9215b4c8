"""A bench on a Ray cluster of two nodes on this machine, one of which is killed at a random moment, twenty times.

Usage: python -m benchmarks.ray.kills OUT_FOLDER [--kills N] [--problems N] [--seconds S] [--runs-on here|cluster] [--seed N]

Real Ray; agents are the built-in ones, evaluators judge by text and take S seconds each. A killed node ends as one whose power fails; a
new one joins at once. Prints one JSON object; exit status 1 where a row is missing or doubled, or finished work was done again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

from tests.support.ray_bench import killed_bench, write_problems
from tests.support.ray_nodes import SECONDS, Nodes


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--problems", type=int, default=60)
    parser.add_argument("--seconds", default="6")
    parser.add_argument("--runs-on", choices=("here", "cluster"), default="here")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    out: Path = options.out.resolve()
    out.mkdir(parents=True)
    nodes = Nodes(out / "pool.log", **{SECONDS: options.seconds})
    try:
        found = _found(options, nodes, out)
    finally:
        nodes.close()
    (out / "kills.json").write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))
    raise SystemExit(0 if found["sound"] else 1)


def _found(options: argparse.Namespace, nodes: Nodes, out: Path) -> dict[str, Any]:
    import ray

    nodes.add(cpus=2)
    nodes.add(cpus=2)
    suite, began = write_problems(out / "suite", options.problems), time.monotonic()
    work = killed_bench(nodes, suite, out / "bench", options.kills, elsewhere=options.runs_on == "cluster", seed=options.seed)
    came = asyncio.run(work)
    failed = [row.reason for row in came.rows if row.status.value not in {"kernel", "reference"}]
    missing = options.problems - len({row.key for row in came.rows})
    return {
        "runs_on": options.runs_on,
        "kills": came.kills,
        "rows": len(came.rows),
        "missing": missing,
        "doubled": came.doubled,
        "failed": failed,
        "evaluations_finished": came.ended.total(),
        "finished_and_repeated": came.repeated,
        "lost_in_flight": came.lost_in_flight,
        "seconds": round(time.monotonic() - began, 1),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.0f} at the end",
        "versions": {"python": platform.python_version(), "ray": ray.__version__},
        "sound": came.whole and not (missing or came.doubled or came.repeated or failed),
    }


if __name__ == "__main__":
    main()
