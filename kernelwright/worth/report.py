"""What memory was worth: the same held-out problems without memory, with the curated seeds, and with what was learnt elsewhere."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from kernelwright.bench.comparison import NOTICEABLE, compare
from kernelwright.bench.row import ResultRow, Status
from kernelwright.bench.statistics import interval, mean
from kernelwright.worth.records import LEARNT, OFF, SEEDS, Against, Group, Interval, WorthReport
from kernelwright.worth.strategies import strategies_worth


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
        strategies=strategies_worth(runs, [row for row in kept if row.arm == LEARNT]) if runs else (),
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
