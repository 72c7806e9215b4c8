"""Learn: credit the strategies an outcome rests on, note the ones that were ignored, keep what is new."""

from __future__ import annotations

import math

from knowledge.learning.words import vouched
from knowledge.log.entry import Entry, Evidence, Origin, signature
from knowledge.log.event_log import EventKind, EventLog, Writer
from knowledge.log.fold import Fold
from knowledge.records import Outcome, Strategy, StrategyState, Trial
from tools.records import Verdict

MAX_TITLE = 160


def learn(log: EventLog, fold: Fold, outcome: Outcome) -> tuple[str, ...]:
    """Write what one outcome teaches, in one transaction; return the ids of strategies made or changed.

    The same run and plan again changes nothing and returns the same ids, so that a run that was killed and resumed
    ends as an undisturbed one. What was not judged, or not within its time, says nothing about an action and is not learnt from.
    """
    if outcome.verdict in (Verdict.INFRASTRUCTURE, Verdict.TIMED_OUT):
        return ()
    with log.writing() as writer:
        fold.follow(log)
        key = f"outcome:{outcome.run}:{outcome.plan}"
        if (done := writer.body(key)) is not None:
            return tuple(done["changed"])
        cited = _resolved(fold, outcome.cited)
        own = _own(writer, fold, outcome)
        credited = list(dict.fromkeys([*(entry.id for entry in cited), own]))
        for strategy in credited:
            evidence = evidence_of(outcome, cited=any(entry.id == strategy for entry in cited), exact=strategy == own)
            writer.add(EventKind.TRIAL, trial_key(outcome, strategy), strategy, evidence.model_dump(mode="json"))
        known = fold.entries.get(own)
        rewrite = vouched(writer, known, outcome) if known is not None else None
        if rewrite is not None:
            body = rewrite.model_dump(mode="json", exclude={"seq", "at"})
            writer.add(EventKind.REWRITE, f"word:{outcome.run}:{outcome.plan}:{own}", own, body)
        ignored = [entry.id for entry in _resolved(fold, outcome.recalled) if entry.id not in credited]
        for strategy in ignored:
            writer.add(
                EventKind.IGNORED, f"ignored:{outcome.run}:{outcome.plan}:{strategy}", strategy, {"run": outcome.run, "plan": outcome.plan}
            )
        unknown = [name for name in outcome.cited if fold.resolve(name) is None]
        body = {
            "outcome": outcome.model_dump(mode="json", exclude={"excerpt"}),
            "changed": credited,
            "ignored": ignored,
            "unknown": unknown,
        }
        writer.add(EventKind.OUTCOME, key, outcome.run, body)
    fold.follow(log)
    return tuple(credited)


def evidence_of(outcome: Outcome, *, cited: bool, exact: bool = False) -> Evidence:
    """The trial that an outcome is to each strategy it is credited to; `exact` to that of its very action and situation."""
    # a gain that is no positive number would spoil every mean it enters
    usable = outcome.verdict is Verdict.PASS and outcome.gain is not None and math.isfinite(outcome.gain) and outcome.gain > 0
    gain = outcome.gain if usable else None
    trial = Trial(
        run=outcome.run,
        candidate=outcome.candidate,
        verdict=outcome.verdict,
        gain=gain,
        tier=outcome.tier,
        device=outcome.device,
        versions=outcome.versions,
        policy=outcome.situation.policy,
        error_cost=outcome.error_cost if outcome.error_cost is not None and math.isfinite(outcome.error_cost) else None,
        gpu_s=outcome.gpu_s,
    )
    return Evidence(
        trial=trial,
        plan=outcome.plan,
        generation=outcome.situation.generation,
        sheet=outcome.situation.device,
        accepted=outcome.accepted,
        cited=cited,
        predicted_gain=outcome.predicted_gain,
        exact=exact,
        start=outcome.situation.start,
    )


def trial_key(outcome: Outcome, strategy: str) -> str:
    """One plan of one run is one trial of a strategy."""
    return f"trial:{outcome.run}:{outcome.plan}:{strategy}"


def strategy_event(strategy: Strategy, origin: Origin, **more: object) -> dict[str, object]:
    """Body of the event that first writes a strategy: without trials, which have events of their own."""
    written = strategy.model_copy(update={"trials": ()})
    return {"strategy": written.model_dump(mode="json"), "origin": origin, **more}


def _resolved(fold: Fold, names: tuple[str, ...]) -> list[Entry]:
    """Find the entries that stand for these ids today; unknown ones, as a language model may cite, are left out."""
    found = [entry for name in names if (entry := fold.resolve(name)) is not None]
    return list({entry.id: entry for entry in found}.values())


def _own(writer: Writer, fold: Fold, outcome: Outcome) -> str:
    """Find the entry of this very action in this very situation, or write it."""
    strategy = strategy_of(outcome)
    known = fold.by_signature.get(signature(strategy))
    entry = fold.resolve(known) if known else None
    if entry is not None:
        return entry.id
    writer.add(EventKind.STRATEGY, f"learnt:{signature(strategy)}", strategy.id, strategy_event(strategy, "learnt"))
    return strategy.id


def strategy_of(outcome: Outcome) -> Strategy:
    """The strategy that an outcome teaches, without its trial."""
    situation, action = outcome.situation, outcome.action
    parameters = ", ".join(f"{name}={value}" for name, value in sorted(action.parameters.items()))
    families = " and ".join(situation.families[:2]) or "any operator"
    limit = f", limited by {situation.bottleneck}" if situation.bottleneck else ""
    title = f"{action.kind}{f' ({parameters})' if parameters else ''} for {families}{limit}"
    return Strategy(
        title=title[:1].upper() + title[1:MAX_TITLE],
        situation=situation,
        kind=action.kind,
        parameters=dict(action.parameters),
        region=outcome.region,
        lesson=outcome.lesson or _plain_lesson(outcome),
        excerpt=outcome.excerpt,
        source=f"run {outcome.run}, candidate {outcome.candidate}",
        state=StrategyState.OBSERVED,
    )


def _plain_lesson(outcome: Outcome) -> str:
    """What happened, where the reviewer said nothing."""
    if outcome.verdict is not Verdict.PASS or outcome.gain is None:
        return f"The candidate ended as {outcome.verdict}."
    return f"The candidate was {outcome.gain:.2f} times as fast as its parent ({outcome.tier})."
