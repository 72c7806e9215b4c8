"""Kill a process that learns and recalls, at random, again and again: nothing acknowledged is lost, nothing is doubled.

Usage: python -m benchmarks.knowledge.kills [--kills 50] [--seed 0]
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from knowledge.store import KnowledgeBase
from knowledge.vectors.embedding import open_embedder

WRITER = (
    "import sys; from benchmarks.knowledge.recall import outcome; from knowledge.vectors.embedding import HashingEmbedder;"
    "from knowledge.store import KnowledgeBase; base = KnowledgeBase(sys.argv[1], HashingEmbedder(), seeds=None)\n"
    "for n in range(10**9):\n"
    "    made = base.learn_now(outcome(n, sys.argv[2]))\n"
    "    print(n, flush=True)\n"
    "    if n % 7 == 0: base.recall_now(outcome(n).situation)\n"
)


def one_kill(folder: Path, run: str, seconds: float) -> set[str]:
    """Let a writer work for some time, kill it, and return the trials it had acknowledged."""
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(folder), run], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    first = writer.stdout.readline()
    time.sleep(seconds)
    writer.send_signal(signal.SIGKILL)
    lines = first + writer.communicate()[0]
    # the kill may cut the last line
    whole = lines[: lines.rfind("\n") + 1]
    return {f"{run}:plan{number}" for number in whole.split()}


def survey(folder: Path, acknowledged: set[str]) -> str:
    """Count what is lost and doubled in log and index."""
    base = KnowledgeBase(folder, open_embedder("hashing"), seeds=None)
    findings = base.diagnose()
    trials = [f"{one.outcome.run}:{one.outcome.plan}" for one in base.experiences()]
    credited = [f"{s.id} {t.run} {t.candidate}" for s in base.all() for t in s.trials]
    base.close()
    lost, doubled = len(acknowledged - set(trials)), len(trials) - len(set(trials)) + len(credited) - len(set(credited))
    states = ", ".join(f"{one.name} {one.state}" for one in findings)
    return f"{len(acknowledged)} acknowledged, {len(trials)} kept, {lost} lost, {doubled} doubled; {states}"


def main() -> None:
    """Kill and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store"
        acknowledged: set[str] = set()
        for number in range(given.kills):
            acknowledged |= one_kill(store, f"w{number}", draw.uniform(0.0, 1.0))
        print(f"{given.kills} kills: {survey(store, acknowledged)}")


if __name__ == "__main__":
    main()
