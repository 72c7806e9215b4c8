"""What memory was worth: the same held-out problems without memory, with the curated seeds, and with what was learnt elsewhere."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from agents.reviewer.protocol import Review
from kernelwright.bench.comparison import NOTICEABLE, ArmFigures, compare
from kernelwright.bench.row import ResultRow, Status
from kernelwright.bench.statistics import interval, mean
from tools.records import Plan, Record, Tier, Verdict
from tools.tracing import RunStore

OFF, SEEDS, LEARNT = "off", "seeds", "learnt"
"""Arms: no memory, the curated seeds alone, what was learnt on the other problems; the last two recall and do not learn."""

Interval = tuple[float, float] | None


class Against(Record):
    """One arm held against no memory, problem by problem and seed by seed; ratios below 1 are savings, gains above 1 are gains."""

    arm: str
    evaluations: float
    """Evaluations to 90 % of the best known gain, over those without memory: geometric mean of the pairs."""
    evaluations_interval: Interval
    gpu_s: float
    """The same of GPU seconds; NaN where none were spent."""
    gpu_s_interval: Interval
    final: float
    """Final gain over that without memory."""
    final_interval: Interval
    pairs: int
    harmed: tuple[tuple[str, float], ...]
    """Problems that end more than 2 % below: name, final gain over that without memory."""


class Group(Record):
    """Held-out problems of families that were learnt on, or of others."""

    title: str
    problems: tuple[str, ...]
    arms: tuple[ArmFigures, ...]
    against: tuple[Against, ...]


class StrategyWorth(Record):
    """What came of one strategy in the runs that recalled what was learnt."""

    id: str
    title: str
    recalled: int
    """Parents it was brought up for."""
    cited: int
    """Plans that rested on it."""
    passed: int
    median_gain: float | None
    """Of the plans that cited it and passed."""
    basis: str
    uncited_gain: float | None
    """Of the plans on the same parents and rounds that did not cite it and passed."""
    problems: tuple[str, ...]
    """Problems on which it was cited."""


class WorthReport(Record):
    """All of it."""

    basis: str
    """`measured` or `estimated`."""
    learnt_on: tuple[str, ...]
    """Problems; empty where the memory was brought along."""
    budget: int
    seeds: int
    groups: tuple[Group, ...]
    strategies: tuple[StrategyWorth, ...]
    """Most cited first."""
    notes: tuple[str, ...] = ()


def report_worth(
    cold: Sequence[ResultRow], warm: Sequence[ResultRow], learning: Sequence[ResultRow], budget: int, runs: Path | None
) -> WorthReport:
    """Put the rows of the benches together; `runs` holds the warm runs' folders, for what single strategies did."""
    every = [_renamed(row) for row in cold] + [row.model_copy(update={"arm": LEARNT}) for row in warm]
    rows = [row for row in every if row.status is not Status.FAILED]
    taught = [row for row in learning if row.status is not Status.FAILED]
    measured = [row for row in rows if row.basis == "measured"]
    kept = measured or [row for row in rows if row.basis == "estimated"]
    notes = [f"{len(rows) - len(kept)} of {len(rows)} rows have no figure of this kind and are left out."] if len(rows) > len(kept) else []
    notes += _failures("learning", len(learning) - len(taught), len(learning)) + _failures("held-out", len(every) - len(rows), len(every))
    known = {family for row in taught for family in row.families[:1]}
    titles = {"families that were learnt on": True, "other families": False} if known else {"all held-out problems": False}
    groups = [_group(title, [r for r in kept if bool(known & set(r.families[:1])) is inside], budget) for title, inside in titles.items()]
    found = tuple(group for group in groups if group is not None)
    notes += (
        [] if found else ["No held-out problem has a figure without memory, with the seeds and with what was learnt: nothing is compared."]
    )
    return WorthReport(
        basis="measured" if measured else "estimated",
        learnt_on=tuple(dict.fromkeys(row.problem for row in taught)),
        budget=budget,
        seeds=len({row.seed for row in kept}),
        groups=found,
        strategies=_strategies(runs, [row for row in kept if row.arm == LEARNT]) if runs else (),
        notes=tuple(notes),
    )


def _failures(what: str, failed: int, of: int) -> list[str]:
    return [f"{failed} of {of} {what} runs failed for no fault of a kernel and are left out."] if failed else []


def _renamed(row: ResultRow) -> ResultRow:
    return row.model_copy(update={"arm": OFF if "/off/" in row.arm else SEEDS})


def _group(title: str, rows: list[ResultRow], budget: int) -> Group | None:
    compared = compare(rows, (OFF, SEEDS, LEARNT), budget)
    if compared is None:
        return None
    pairs = _pairs(rows)
    problems = tuple(dict.fromkeys(problem for problem, _ in pairs))
    against = tuple(_against(arm, pairs, compared.budget) for arm in (SEEDS, LEARNT))
    return Group(title=title, problems=problems, arms=compared.arms, against=against)


def _pairs(rows: list[ResultRow]) -> dict[tuple[str, int], dict[str, ResultRow]]:
    """Rows by problem and seed, and then by arm; only those that every arm has."""
    cells: dict[tuple[str, int], dict[str, ResultRow]] = defaultdict(dict)
    for row in rows:
        if row.judgeable and row.run:
            cells[row.problem, row.seed][row.arm] = row
    return {key: arms for key, arms in cells.items() if len(arms) == 3}


def _against(arm: str, pairs: dict[tuple[str, int], dict[str, ResultRow]], budget: int) -> Against:
    best: dict[str, float] = defaultdict(float)
    for (problem, _), arms in pairs.items():
        best[problem] = max(best[problem], *(_log_final(row) for row in arms.values()))
    evaluations, seconds, finals = [], [], []
    by_problem: dict[str, list[float]] = defaultdict(list)
    for (problem, _), arms in pairs.items():
        change = _log_final(arms[arm]) - _log_final(arms[OFF])
        finals.append(change)
        by_problem[problem].append(change)
        # where nothing gains, no one can be sooner
        if best[problem] > math.log(NOTICEABLE):
            (mine, mine_s), (theirs, theirs_s) = (_to_most(arms[one], best[problem], budget) for one in (arm, OFF))
            evaluations.append(math.log(mine / theirs))
            if mine_s > 0 and theirs_s > 0:
                seconds.append(math.log(mine_s / theirs_s))
    ratios = {problem: math.exp(mean(values)) for problem, values in by_problem.items()}
    harmed = sorted((item for item in ratios.items() if item[1] < 1 / NOTICEABLE), key=lambda item: item[1])
    return Against(
        arm=arm,
        evaluations=math.exp(mean(evaluations)),
        evaluations_interval=_exp(interval(evaluations)),
        gpu_s=math.exp(mean(seconds)),
        gpu_s_interval=_exp(interval(seconds)),
        final=math.exp(mean(finals)),
        final_interval=_exp(interval(finals)),
        pairs=len(pairs),
        harmed=tuple(harmed),
    )


def _log_final(row: ResultRow) -> float:
    return math.log(row.curve[-1].speedup) if row.curve else 0.0


def _to_most(row: ResultRow, best: float, budget: int) -> tuple[float, float]:
    """Evaluations and GPU seconds to 90 % of the best known gain; who never gets there counts all there is."""
    wanted = math.exp(0.9 * best)
    for place, step in enumerate(row.curve[:budget] if budget else row.curve, 1):
        if step.speedup >= wanted:
            return float(place), step.gpu_s
    return float(budget or max(1, len(row.curve))), row.curve[-1].gpu_s if row.curve else 0.0


def _exp(band: Interval) -> Interval:
    return (math.exp(band[0]), math.exp(band[1])) if band else None


class _Seen:
    """What runs say of one strategy while they are read."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.recalled = self.cited = 0
        self.gains: list[tuple[float, bool]] = []
        self.others: list[tuple[float, bool]] = []
        self.problems: dict[str, None] = {}


def _strategies(runs: Path, rows: Sequence[ResultRow]) -> tuple[StrategyWorth, ...]:
    seen: dict[str, _Seen] = {}
    for row in rows:
        if (runs / row.run / "run.db").is_file():
            store = RunStore(runs / row.run)
            try:
                _read_run(store, row.problem, seen)
            finally:
                store.close()
    found = [_worth(name, one) for name, one in seen.items()]
    return tuple(sorted(found, key=lambda one: (-one.cited, -one.recalled, one.id)))


def _read_run(store: RunStore, problem: str, seen: dict[str, _Seen]) -> None:
    from graphs.run.records import Recall

    recalls = {name: (name.partition("/")[2], store.written("recall", name), found) for name, found in store.all("recall", Recall).items()}
    plans = store.all("plan", Plan)
    for parent, begun, recall in recalls.values():
        ended = min((at for other, at, _ in recalls.values() if other == parent and at > begun), default=None)
        mine = [
            p for p in plans.values() if p.parent == parent and begun <= (at := store.written("plan", p.id)) and (not ended or at < ended)
        ]
        for one in recall.recalled:
            entry = seen.setdefault(one.strategy.id, _Seen(one.strategy.title))
            entry.recalled += 1
            for plan in mine:
                cites = one.strategy.id in plan.strategies
                entry.cited += cites
                if cites:
                    entry.problems[problem] = None
                review = store.get("review", plan.id, Review)
                if review is not None and review.verdict is Verdict.PASS and review.gain is not None:
                    (entry.gains if cites else entry.others).append((review.gain.value, review.gain.tier == Tier.ESTIMATED))


def _worth(name: str, one: _Seen) -> StrategyWorth:
    gains, basis = _of_one_basis(one.gains)
    others, _ = _of_one_basis(one.others)
    return StrategyWorth(
        id=name,
        title=one.title,
        recalled=one.recalled,
        cited=one.cited,
        passed=len(one.gains),
        median_gain=statistics.median(gains) if gains else None,
        basis=basis,
        uncited_gain=statistics.median(others) if others else None,
        problems=tuple(one.problems),
    )


def _of_one_basis(gains: list[tuple[float, bool]]) -> tuple[list[float], str]:
    """Measured gains, or estimated ones where nothing was measured."""
    measured = [gain for gain, estimated in gains if not estimated]
    return (measured, "measured") if measured else ([gain for gain, _ in gains], "estimated" if gains else "none")
