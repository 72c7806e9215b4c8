"""The words for candidates, plans, verdicts and tiers: what a person reads in the place of ids, parameters and enums."""

from __future__ import annotations

from agents.records.tune import TRIALS, is_tuning
from graphs.run.starting import USER
from tools.actions import GUIDE
from tools.codegen import Schedule
from tools.codegen.schedule.words import parameter_in_words, place_in_words, schedule_in_words
from tools.cost.choice import chosen_number
from tools.logs import printable, telling_part
from tools.records import IDEA, Action, ActionKind, Candidate, Evaluation, Tier, Verdict

VERDICTS: dict[Verdict, str] = {
    Verdict.PASS: "right",
    Verdict.BUILD_FAILED: "does not build",
    Verdict.CRASHED: "crashed",
    Verdict.TIMED_OUT: "timed out",
    Verdict.WRONG: "wrong",
    Verdict.UNSTABLE: "unstable",
    Verdict.CHEATED: "cheated",
    Verdict.IMPOSSIBLE_TIME: "impossible time",
    Verdict.TIMING_INCONSISTENT: "time not credible",
    Verdict.BUILT: "builds",
    Verdict.INFRASTRUCTURE: "not judged",
}
SURE: dict[Tier, str] = {
    Tier.SEALED: "measured, in a process that never held the kernel's own host code (sealed)",
    Tier.BRACKETED: "measured, and confirmed by a clock outside of the kernel's process (bracketed)",
    Tier.IN_PROCESS: "measured, but only by the kernel's own process (in-process)",
    Tier.ESTIMATED: "estimated by a cost model: nothing was timed",
}
"""How far a time can be trusted."""
LONGEST = 160
"""Characters of a reason that is shown beside a candidate; `--verbose` and the trace have all of it."""

WHOLE_US = 1000.0
"""Microseconds from which on tenths are left out."""


def candidate_in_words(candidate: Candidate, evaluation: Evaluation | None = None) -> str:
    """Say what a candidate does: how many kernels it launches where that is known, and how they run or what its writer changed."""
    if candidate.schedule:
        said = schedule_in_words(schedule_of(candidate))
    elif candidate.coder == USER:
        said = "your kernel"
    elif is_tuning(candidate.action):
        said = f"numbers: {candidate.notes[0].partition(': ')[2].rstrip('.')}" if candidate.notes else "other numbers"
    else:
        said = shortened(candidate.idea).rstrip(".") if candidate.idea else action_in_words(candidate.action, None)
    mended = ["1 repair" if candidate.repairs == 1 else f"{candidate.repairs} repairs"] if candidate.repairs else []
    return printable(", ".join(filter(None, [_launched(candidate, evaluation), said, *mended])))


def action_in_words(action: Action, parent: Candidate | None) -> str:
    """Say what an action is about to change; its region is named by the operators that the parent's schedule has there."""
    if number := chosen_number(action):
        return f"the cost model's {'first choice' if number == 1 else f'choice number {number}'}"
    if action.kind is ActionKind.REWRITE:
        return f"a design: {shortened(str(action.parameters[IDEA]))}" if IDEA in action.parameters else "a design of the model's own"
    place = place_in_words(action.region, schedule_of(parent) if parent and parent.schedule else None)
    if is_tuning(action):
        return f"tune the numbers{f' of {place}' if place else ''}, {counted(int(action.parameters[TRIALS]), 'trial')} at most"
    told = [parameter_in_words(name, value) for name, value in action.parameters.items()]
    title = GUIDE[action.kind].title
    return f"{title[0].lower()}{title[1:]}" + (f" in {place}" if place else "") + (f": {', '.join(told)}" if told else "")


def schedule_of(candidate: Candidate) -> Schedule:
    """Read the schedule of a candidate that the built-in coder wrote."""
    return Schedule.model_validate_json(candidate.schedule or "")


def why_in_words(evaluation: Evaluation) -> str:
    """Say in a clause why a candidate did not pass; empty where it did."""
    if evaluation.verdict is Verdict.PASS:
        return ""
    wrong = [one for one in evaluation.correctness.outputs if not one.passed] if evaluation.correctness else []
    if wrong and evaluation.verdict is Verdict.WRONG:
        worst = wrong[0]
        return f"{worst.output}: relative error {worst.relative_l2:.1e}, limit {worst.limit_relative_l2:.1e}"
    said = next(iter(evaluation.notes), "") or telling_part(evaluation.log, LONGEST)
    return shortened(f"{evaluation.rule}: {said}" if evaluation.rule else said)


def shortened(text: str) -> str:
    """Cut a reason to its beginning, on one line."""
    line = " ".join(printable(text).split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST].rpartition(' ')[0]} …"


def time_in_words(time_us: float, tier: Tier) -> str:
    """Write a time with its unit, marked where it was not measured."""
    return f"{time_us:,.{0 if time_us >= WHOLE_US else 1}f} µs" + (" est." if tier is Tier.ESTIMATED else "")


def counted(number: int, noun: str) -> str:
    """Write a number and its noun: `1 kernel`, `2 kernels`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _launched(candidate: Candidate, evaluation: Evaluation | None) -> str:
    """Count the kernels of its own that one call launches, or that its schedule generates where nobody launched them yet."""
    if evaluation and evaluation.launches:
        ours = sum(one.kind != "library" for one in evaluation.launches)
    elif candidate.schedule:
        ours = sum(region.is_generated for region in schedule_of(candidate).regions)
    else:
        return ""
    return "one kernel" if ours == 1 else "no kernel of its own" if ours == 0 else f"{ours} kernels"
