"""What the memory costs: start-up, recall and learning at growing sizes, and two processes writing at once.

Usage: python -m benchmarks.knowledge.recall [--sizes 1000,10000] [--embedder default|hashing] [--outcomes 10000]
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path

from knowledge.learning.learn import evidence_of, strategy_of
from knowledge.recall.ageing import Moment
from knowledge.recall.ranking import rank
from knowledge.records import SCHEMA, Outcome, Situation
from knowledge.sharing.portable import FORMAT, Header, Line
from knowledge.store import CANDIDATES, TOKENS, KnowledgeBase
from knowledge.vectors.embedding import Embedder, HashingEmbedder, open_embedder
from knowledge.vectors.index import described, fitting
from tools.records import Action, ActionKind, Bottleneck, OperatorFamily, Verdict

RECALLS = 60
COLUMNS = (
    "entries",
    "import /s",
    "index /s",
    "recall ms",
    "recall p90",
    "repeated ms",
    "bucket's 1st",
    "learn ms",
    "after learn",
    "open s",
    "1st recall s",
    "disk MB",
)
FAMILIES, BOTTLENECKS, KINDS = list(OperatorFamily), list(Bottleneck), list(ActionKind)


def outcome(number: int, run: str = "bench") -> Outcome:
    """One of any number of distinct outcomes, spread over families, bottlenecks and kinds."""
    family = FAMILIES[number % len(FAMILIES)]
    bottleneck = BOTTLENECKS[number // 3 % len(BOTTLENECKS)]
    columns = 64 + number
    situation = Situation(
        families=(family, FAMILIES[number // 7 % len(FAMILIES)]),
        operators=(f"aten.{family}.default", f"aten.op{number % 97}.default"),
        bottleneck=bottleneck,
        generation=("hopper", "ampere", "blackwell")[number % 3],
        dtypes=("float32",),
        summary=f"{family} operator on float32 inputs of shape 4096x{columns}, limited by {bottleneck}.",
    )
    return Outcome(
        run=run,
        plan=f"plan{number}",
        situation=situation,
        action=Action(kind=KINDS[number // 5 % len(KINDS)], region="r0", parameters={"BLOCK_N": columns}),
        candidate=f"cand{number}",
        verdict=Verdict.PASS if number % 4 else Verdict.WRONG,
        gain=1.0 + number % 17 / 10 if number % 4 else None,
        predicted_gain=None,
        tier="bracketed",
        device="bench",
        accepted=number % 4 > 0,
        lesson=f"A block of {columns} columns keeps the {family} row in registers when {bottleneck} is the limit.",
        cited=(),
        recalled=(),
    )


def timed(work: Callable[[], object]) -> float:
    """Seconds one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def row(*cells: object) -> None:
    """Print one line of the table."""
    print("  ".join(f"{cell:>12.1f}" if isinstance(cell, float) else f"{cell!s:>12}" for cell in cells))


def write_export(path: Path, size: int) -> None:
    """Write `size` learnt strategies with one trial each as an export: filling a large store by commits alone would take hours."""
    lines = [Header(format=FORMAT, version=SCHEMA, entries=size).model_dump_json()]
    for number in range(size):
        one = outcome(number)
        strategy = strategy_of(one)
        lines.append(Line(strategy=strategy, evidence=(evidence_of(one, cited=False),)).model_dump_json())
    path.write_text("\n".join(lines) + "\n")


class HashedFill:
    """Embeds single texts, which is what a question is, with a model, and whole batches by hashing: fills a large index in minutes."""

    def __init__(self, model: Embedder) -> None:
        """Ask `model` about single texts."""
        self._model, self._hashing = model, HashingEmbedder(model.dimensions)
        self.name = f"benchmark: questions {model.name}, entries {self._hashing.name}"
        self.dimensions = model.dimensions

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one unit vector a text, in order."""
        return (self._model if len(texts) == 1 else self._hashing).embed(texts)


def measure(folder: Path, size: int, embedder: str, fill: str) -> None:
    """Fill a store with `size` entries and print what its operations cost."""
    model = open_embedder(embedder)
    if fill == "hashing":
        model = HashedFill(model)
    model.embed(["warm"])
    write_export(folder.with_suffix(".jsonl"), size)
    base = KnowledgeBase(folder, model, seeds=None)
    filled = timed(lambda: base.import_(folder.with_suffix(".jsonl")))
    index = timed(base.rebuild)
    # every typed bucket's vectors are fetched once a process; what a process pays first is told apart
    firsts = [timed(partial(base.recall_now, asked(n))) for n in range(RECALLS)]
    recalls = [timed(partial(base.recall_now, asked(n, RECALLS))) for n in range(RECALLS)]
    repeats = [timed(partial(base.recall_now, asked(n, RECALLS))) for n in range(RECALLS)]
    writes, after = [], []
    for n in range(RECALLS):
        writes.append(timed(partial(base.learn_now, outcome(size + n))))
        after.append(timed(partial(base.recall_now, outcome(size + n).situation)))
    split = parts(base)
    base.close()
    again = KnowledgeBase(folder, model, seeds=None)
    listing = timed(again.all)
    first = timed(lambda: again.recall_now(outcome(0).situation))
    stats = again.stats()
    again.close()
    megabytes = sum(float(str(stats[name])) for name in ("log_bytes", "index_bytes")) / 1e6
    p90 = statistics.quantiles(recalls, n=10)[-1]
    middle = [statistics.median(times) for times in (recalls, repeats, firsts, writes, after)]
    milliseconds = [1e3 * x for x in (middle[0], p90, *middle[1:])]
    row(size, size / filled, size / index, *milliseconds, listing, first, megabytes)
    print("    of a recall, ms: " + ", ".join(f"{name} {value:.2f}" for name, value in split.items()))
    for note in (*base.notes, *again.notes):
        print(f"note: {note}")


def parts(base: KnowledgeBase) -> dict[str, float]:
    """Median milliseconds of the parts of a recall with a new question; the rest is reading and writing the log."""
    spent: dict[str, list[float]] = {name: [] for name in ("embed", "filter", "search", "rank", "whole")}
    for number in range(RECALLS):
        situation = asked(number, 2 * RECALLS)
        spent["embed"].append(timed(partial(base._index._vector, described(situation))))
        # the vector is kept, so what follows embeds nothing
        spent["whole"].append(timed(partial(base.recall_now, situation)))
        spent["filter"].append(timed(partial(fitting, base._fold, situation, bottleneck=True)))
        rows = fitting(base._fold, situation, bottleneck=True)
        spent["search"].append(timed(partial(base._index.among, base._fold, described(situation), rows, CANDIDATES)))
        hits = base._index.among(base._fold, described(situation), rows, CANDIDATES)
        moment = Moment(datetime.now(UTC), base._fold.present, base._fold.edition)
        spent["rank"].append(timed(partial(rank, base._fold.entries, hits, situation, 6, moment, TOKENS)))
    middle = {name: 1e3 * statistics.median(times) for name, times in spent.items()}
    rest = middle["whole"] - middle["filter"] - middle["search"] - middle["rank"]
    return {**{name: middle[name] for name in ("embed", "filter", "search", "rank")}, "log": rest}


def asked(number: int, off: int = 0) -> Situation:
    """A question about the family and bottleneck of outcome `number`, in words not put before."""
    situation = outcome(number * 37).situation
    return situation.model_copy(update={"summary": f"{situation.summary} Question {number + off}."})


def two_writers(folder: Path, count: int) -> None:
    """Let two processes learn at once, and check that nothing was lost."""
    script = (
        "import sys; from pathlib import Path; from benchmarks.knowledge.recall import outcome;"
        "from knowledge.vectors.embedding import HashingEmbedder; from knowledge.store import KnowledgeBase;"
        "base = KnowledgeBase(sys.argv[1], HashingEmbedder(), seeds=None);"
        "[base.learn_now(outcome(n, sys.argv[2])) for n in range(int(sys.argv[3]))]; base.close()"
    )
    start = time.perf_counter()
    writers = [subprocess.Popen([sys.executable, "-c", script, str(folder), name, str(count)]) for name in ("left", "right")]
    if any(writer.wait() for writer in writers):
        raise SystemExit("a writer failed")
    seconds = time.perf_counter() - start
    base = KnowledgeBase(folder, open_embedder("hashing"), seeds=None)
    trials = sum(len(strategy.trials) for strategy in base.all())
    base.close()
    print(f"two processes, {count} outcomes each: {2 * count / seconds:.0f} outcomes/s with start-up, {trials} of {2 * count} trials kept")


def main() -> None:
    """Measure once and print a table with the machine's facts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1000,10000")
    parser.add_argument("--embedder", default="default")
    parser.add_argument("--fill", default="model", help="hashing: entries get hashed vectors, questions the embedder's")
    parser.add_argument("--outcomes", type=int, default=10_000)
    given = parser.parse_args()
    machine = f"{platform.machine()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}"
    print(f"{machine}, Python {platform.python_version()}")
    print(f"chromadb {version('chromadb')}, sentence-transformers {version('sentence-transformers')}")
    embedder = open_embedder(given.embedder)
    print(f"embedder {embedder.name}: first vector after {timed(lambda: embedder.embed(['warm'])):.1f} s (import and load)")
    print(f"one question embedded: {1e3 * statistics.median(timed(partial(embedder.embed, [asked(n).summary])) for n in range(20)):.1f} ms")
    print(f"making a KnowledgeBase: {1e6 * timed(lambda: KnowledgeBase('unused')):.0f} µs")
    row(*COLUMNS)
    for size in [int(size) for size in given.sizes.split(",")]:
        with tempfile.TemporaryDirectory() as folder:
            measure(Path(folder) / "store", size, given.embedder, given.fill)
    if given.outcomes:
        with tempfile.TemporaryDirectory() as folder:
            two_writers(Path(folder) / "store", given.outcomes)


if __name__ == "__main__":
    main()
