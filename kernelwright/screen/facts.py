"""The facts of a run as plain values: what `--json` prints and what the tables are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents.coder.protocol import Refusal
from agents.models import Trouble
from agents.models.chat import TROUBLE
from agents.reviewer.protocol import Review
from graphs.optimize.confirm import KERNEL, UNCONFIRMED
from graphs.optimize.evidence import evidence_folder
from graphs.run.counted import why_uncounted
from graphs.run.fork import fork_of
from graphs.run.records import OTHER_BASELINES, Considered, Delivery, Recall, Tuning
from graphs.run.settings import settings_of
from graphs.run.workbench import USE, ToolUse
from kernelwright.screen.steering import steering_facts
from kernelwright.screen.words import action_in_words, candidate_in_words, why_in_words
from knowledge.records import Recalled
from tools.errors import UserError
from tools.problems.source import entry_to_name
from tools.records import ROOT, Baselines, Candidate, Evaluation, Plan, Problem, Profile, Verdict, content_hash
from tools.tracing import RunStore
from tools.tracing.outlines import Judged

Facts = dict[str, Any]


def run_facts(store: RunStore, judged: Sequence[Judged] | None = None) -> Facts:
    """One run in a line: what `runs` lists; who has its evaluations in outline gives them."""
    settings = settings_of(store)
    delivery = next(iter(store.all("delivery", Delivery).values()), None)
    judged = store.outline.judged() if judged is None else judged
    if delivery:
        best = next((one for one in judged if one.id == delivery.evaluation), None)
    else:
        best = max((one for one in judged if one.speedup), key=lambda one: one.speedup or 0.0, default=None)
    return {
        "run": store.meta("run"),
        "folder": str(store.folder),
        "state": "ended" if delivery else "unfinished",
        "problem_file": settings.problem_file,
        "target": settings.target,
        "search": settings.search,
        "evaluations": len(judged),
        "speedup": best.speedup if best else None,
        "time_us": best.time_us if best else None,
        "tier": best.tier if best else None,
        "delivered": delivery.candidate if delivery else None,
        "created": float(store.meta("created") or 0.0),
    }


def tree_facts(store: RunStore) -> Facts:
    """The whole run: baselines, every candidate with its plan and outcome, refusals, what was delivered and spent."""
    return {**head_facts(store), "candidates": candidate_lines(store)}


def head_facts(store: RunStore, judged: Sequence[Judged] | None = None) -> Facts:
    """The same but for its candidates."""
    problem = next(iter(store.all("problem", Problem).values()))
    baselines = store.get("baselines", problem.id, Baselines)
    profile = store.get("profile", ROOT, Profile)
    delivery = next(iter(store.all("delivery", Delivery).values()), None)
    refusals = store.all("refusal", Refusal)
    plans = {name: plan for name in refusals if (plan := store.get("plan", name, Plan))}
    return {
        **run_facts(store, judged),
        "problem": problem.name,
        "problem_id": problem.id,
        "fork": fork_facts(store),
        "steering": steering_facts(store),
        "policy": problem.policy.model_dump(mode="json"),
        "flags": str(problem.policy.precision),
        "other_baselines": _other_baselines(store),
        "baselines": baselines.model_dump(mode="json") if baselines else None,
        "reference_profile": profile.model_dump(mode="json") if profile else None,
        "refused": [{"plan": name, "parent": plans[name].parent, "action": str(plans[name].action),
                     "did": action_in_words(plans[name].action, store.candidate(plans[name].parent)), "reason": refusals[name].reason}
                    for name in refusals if name in plans],
        "considered": [said for one in store.all("considered", Considered).values() for said in one.said],
        "delivery": delivery.model_dump(mode="json") if delivery else None,
        "model_calls": call_facts(store),
        "spent": store.spent().model_dump(mode="json"),
    }  # fmt: skip


def fork_facts(store: RunStore) -> Facts | None:
    """Where a run was forked from; None for one that began at its reference."""
    fork = fork_of(store)
    return {**fork.model_dump(mode="json", exclude={"draft"}), "words": fork.words} if fork else None


def _other_baselines(store: RunStore) -> dict[str, Facts]:
    return {name: found.model_dump(mode="json") for name, found in store.all(OTHER_BASELINES, Baselines).items()}


def candidate_lines(store: RunStore) -> list[Facts]:
    """Every candidate; of a tuning the one it ended with, and its trials as a part of that."""
    inside = inner_trials(store)
    lines = [candidate_line(store, name, one) for name, one in store.all("candidate", Candidate).items() if name not in inside]
    trials = {one.best: [trial.model_dump(mode="json") for trial in one.trials] for one in store.all("tuning", Tuning).values() if one.best}
    return [line | {"trials": trials.get(line["id"], [])} for line in lines]


def inner_trials(store: RunStore) -> set[str]:
    """Candidates that are shown as a part of the tuning that tried them."""
    tunings = store.all("tuning", Tuning).values()
    inside = {trial.candidate for tuning in tunings for trial in tuning.trials} - {tuning.best for tuning in tunings}
    # a trial may be a candidate that a step of its own had led to before
    return inside - {name for name in inside if store.all("review", Review, subject=name)}


def candidate_line(store: RunStore, name: str, candidate: Candidate) -> Facts:
    """One candidate with its plan and how it ended."""
    plan = store.get("plan", content_hash(candidate.parent, candidate.action.id), Plan)
    evaluations = store.all("evaluation", Evaluation, subject=name).values()
    evaluation = next(iter(evaluations), None)
    review = next(iter(store.all("review", Review, subject=name).values()), None)
    return {
        "id": name,
        "parent": candidate.parent,
        "plan": plan.id if plan else None,
        "action": str(candidate.action),
        "did": action_in_words(candidate.action, store.candidate(candidate.parent)),
        "what": candidate_in_words(candidate, evaluation),
        "rationale": plan.rationale if plan else "",
        "planner": plan.planner if plan else "",
        "tools": [one.line for one in store.all(USE, ToolUse, subject=plan.id).values()] if plan else [],
        "strategies": list(plan.strategies) if plan else [],
        "predicted_gain": plan.predicted_gain if plan else None,
        "coder": candidate.coder,
        "repairs": candidate.repairs,
        "verdict": evaluation.verdict.value if evaluation else None,
        "why_not": why_in_words(evaluation) if evaluation else "",
        "tier": evaluation.tier if evaluation else None,
        "time_us": evaluation.time_us if evaluation else None,
        "speedup": evaluation.speedup if evaluation else None,
        "accepted": review.accepted if review else None,
        "gain": review.gain.model_dump(mode="json") if review and review.gain else None,
        "review": review.reason if review else "",
        "lesson": review.lesson if review else "",
        "confirmed": any(e.verdict == "PASS" for e in list(evaluations)[1:]),
    }


def named_candidate(store: RunStore, prefix: str) -> str:
    """The id of the one candidate whose id begins so; raises UserError where that is none or several."""
    matches = [name for name in store.names("candidate") if name.startswith(prefix)]
    if len(matches) != 1:
        raise UserError(f"{len(matches)} candidates of this run start with {prefix!r}.", "Take an id from `kernelwright trace RUN`.")
    return matches[0]


def candidate_facts(store: RunStore, prefix: str) -> Facts:
    """One candidate whole: plan, recalled strategies, source, difference, evaluations, profile."""
    name = named_candidate(store, prefix)
    candidate = store.candidate(name)
    assert candidate is not None
    profile = store.get("profile", name, Profile)
    recalls = _recalls_for(store, name, candidate.parent)
    evaluations = list(store.all("evaluation", Evaluation, subject=name).values())
    confirmed = next((one for one in reversed(evaluations[1:]) if one.verdict is Verdict.PASS), None)
    return {
        **candidate_line(store, name, candidate),
        "notes": list(candidate.notes),
        "recalled": [_recalled_line(store, at, one) for at, recall in recalls.items() for one in recall.recalled],
        "diff": store.diff(name),
        "source_file": str(store.folder / "candidates" / f"{name}.py"),
        "evaluations": [one.model_dump(mode="json") for one in evaluations],
        "again": {"speedup": confirmed.speedup, "time_us": confirmed.time_us, "tier": confirmed.tier} if confirmed else None,
        "profile": profile.model_dump(mode="json") if profile else None,
        "uncounted": why_uncounted(store, name),
    }


def _recalls_for(store: RunStore, candidate: str, parent: str) -> dict[str, Recall]:
    """What was recalled for the parent in the round that planned this candidate: the last recall before it was written."""
    written = store.written("candidate", candidate)
    earlier = [name for name in store.all("recall", Recall, subject=parent) if store.written("recall", name) <= written]
    found = store.get("recall", earlier[-1], Recall) if earlier else None
    return {earlier[-1]: found} if found else {}


def rounds_of(store: RunStore, candidate: str, parent: str) -> tuple[float, float]:
    """From when to when a candidate was worked on: its round's recall, and the last that was written about it; seconds since the epoch."""
    begun = next(iter(_recalls_for(store, candidate, parent)), "")
    last = store.outline.last_about(candidate)
    return (store.written("recall", begun) if begun else 0.0), last


def _recalled_line(store: RunStore, name: str, one: Recalled) -> Facts:
    what = {"id": one.strategy.id, "title": one.strategy.title, "score": one.score, "why": one.why, "warning": one.warning}
    return {"round": int(name.partition("/")[0]), **what, "worth": _worth(store, name, one.strategy.id)}


def _worth(store: RunStore, recall: str, strategy: str) -> str:
    """Say what came of the plans that had this recall before them and cited the strategy."""
    parent = recall.partition("/")[2]
    recalls = [store.written("recall", other) for other in store.all("recall", Recall, subject=parent)]
    begun = store.written("recall", recall)
    ended = min((at for at in recalls if at > begun), default=None)
    plans = store.all("plan", Plan, subject=parent).values()
    mine = [plan for plan in plans if begun <= (at := store.written("plan", plan.id)) and (ended is None or at < ended)]
    cited = [plan for plan in mine if strategy in plan.strategies]
    if not cited:
        if not mine:
            return "no plan was made"
        return f"none of the {len(mine)} plans cited it" if len(mine) > 1 else "the plan did not cite it"
    return "; ".join(_came_of(store.get("review", plan.id, Review), plan) for plan in cited)


def _came_of(review: Review | None, plan: Plan) -> str:
    if review is None:
        return f"{plan.action} was not judged"
    gain = f", gain {review.gain.value:.2f}x ({review.gain.tier})" if review.gain else ""
    return f"{plan.action} ended {review.verdict}{gain}, {'accepted' if review.accepted else 'not accepted'}"


def node_facts(store: RunStore) -> Facts:
    """Every execution of a node and every model call, in order."""
    made = {content_hash(one.parent, one.action.id): name for name, one in store.all("candidate", Candidate).items()}
    spans = [
        {
            **span.model_dump(mode="json"),
            "seconds": span.ended - span.started if span.ended else None,
            "candidate": made.get(span.subject) or (span.subject if span.subject in made.values() else None),
        }
        for span in store.spans()
    ]
    calls = {"calls": store.calls(), "model_calls": call_facts(store)}
    return {"run": store.meta("run"), "spans": spans, **calls, "spent": store.spent().model_dump(mode="json")}


def result_facts(store: RunStore) -> Facts:
    """What `optimize` ends with."""
    delivery = next(iter(store.all("delivery", Delivery).values()))
    problem = next(iter(store.all("problem", Problem).values()))
    baselines = store.get("baselines", problem.id, Baselines)
    evaluation = store.get("evaluation", delivery.evaluation, Evaluation) if delivery.evaluation else None
    shown = store.candidate(delivery.unconfirmed or delivery.candidate)
    kernel, unconfirmed = store.folder / "result" / KERNEL, store.folder / "result" / UNCONFIRMED
    bundle = evidence_folder(store.folder, delivery.candidate)
    return {
        **run_facts(store),
        "problem": problem.name,
        "policy": problem.policy.model_dump(mode="json"),
        "flags": str(problem.policy.precision),
        "other_baselines": _other_baselines(store),
        "entry": entry_to_name(problem.source, settings_of(store).problem_file, problem.entry),
        "marks": list(baselines.admission.marks) if baselines else [],
        "what": candidate_in_words(shown, evaluation) if shown else None,
        "reason": delivery.reason,
        "search_ended": delivery.ended,
        "kernel": str(kernel) if kernel.is_file() else None,
        "unconfirmed": str(unconfirmed) if delivery.unconfirmed else None,
        "judged": not (delivery.unconfirmed or delivery.unjudged),
        "bundle": str(bundle) if bundle.is_dir() else None,
        "evaluation": evaluation.model_dump(mode="json") if evaluation else None,
        "spent": store.spent().model_dump(mode="json"),
        "model_calls": call_facts(store),
    }


def call_facts(store: RunStore) -> Facts:
    """How many of a run's model calls were answered, failed for good, or met a limit, and why the last of these came to nothing."""
    answered = store.outline.call_keys()
    troubles = [one for key, one in store.all(TROUBLE, Trouble).items() if key not in answered]
    failed = [one for one in troubles if one.kind == "unavailable"]
    last = (failed or troubles)[-1].what if troubles else ""
    return {"used": len(answered), "failed": len(failed), "withheld": len(troubles) - len(failed), "last_failure": last}
