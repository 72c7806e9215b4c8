"""A bundle compared with a new evaluation of its kernel on this machine, with fresh seeds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from tools.evaluation.wire.jobs.derive import Derived
from tools.evaluation.wire.size_classes import LARGE_BYTES
from tools.evidence.bundle import Bundle
from tools.evidence.claims import Claim, either, fails, holds, unchecked
from tools.evidence.origin import judge
from tools.records import Estimate, Evaluation, Problem, Tier, Timing, Verdict

SESSIONS = 0.05
"""What two sessions on devices of one kind may differ by beyond their intervals: an assumption, wider than the 1 % that is aimed at."""

ESTIMATES = 0.01
"""What two estimates of the same code may differ by; another compiler makes other code."""

ERRORS, ERRORS_SLACK = 10.0, 0.05
"""Fresh inputs give other errors: ten times as near to the limit, or a twentieth of the limit, is no contradiction."""


def problem_claims(bundle: Bundle, derived: Derived, own_copy: Problem | None) -> Iterator[Claim]:
    """Compare the problem's record with what its source gives, and its source with the user's `own_copy`."""
    problem = bundle.problem
    if own_copy is not None:
        words = (
            "its source is that of your copy" if own_copy.source == problem.source else "its source differs from your copy, which was used"
        )
        yield either("problem", own_copy.source == problem.source, words)
    if derived.problem is None:
        yield fails("shapes", f"the problem's source cannot be used: {derived.refusal}")
        return
    if large := [v for v in derived.variants if v.abi.nbytes >= LARGE_BYTES]:
        yield fails("shapes", f"a small size of the problem takes {large[0].abi.nbytes >> 30} GiB; nothing was run")
    elif not _have_the_same_abis(derived.problem, problem):
        yield fails("shapes", "the problem's source gives another ABI than its record")
    elif derived.problem.work == problem.work and [v.sizes for v in derived.variants] == [v.sizes for v in bundle.variants]:
        yield holds("shapes", f"ABI, work and {len(bundle.variants)} small sizes are those that the source gives")
    elif bundle.origin.judge == judge():
        yield fails("shapes", "the source gives other work or other small sizes than the record, by the same version")
    else:
        yield unchecked("shapes", "ABI as the source gives it; another version chose work and small sizes, this version's own were used")


def _have_the_same_abis(derived: Problem, stated: Problem) -> bool:
    """Compare all ABIs; where an older record does not say how outputs lie in the result, that is left out."""
    pairs = list(zip_longest(*([each.abi, *(one.abi for one in each.shapes)] for each in (derived, stated))))
    return all(one and other and (one if other.returns else one.model_copy(update={"returns": ""})) == other for one, other in pairs)


def repeated(bundle: Bundle, fresh: Evaluation) -> Iterator[Claim]:
    """Compare claim by claim."""
    yield _verdict(bundle, fresh)
    if fresh.verdict is Verdict.PASS and bundle.evaluation.verdict is Verdict.PASS:
        yield _errors(bundle.evaluation, fresh)
        yield _class(bundle.evaluation, fresh)
        if bundle.evaluation.estimate:
            yield _estimate(bundle.evaluation.estimate, bundle.evaluation, fresh)
        if bundle.evaluation.timing:
            yield from _timing(bundle.evaluation.timing, bundle.evaluation, fresh)
    if fresh.verdict is not Verdict.INFRASTRUCTURE:
        yield from _told(bundle.evaluation, fresh)


def _told(stated: Evaluation, fresh: Evaluation) -> Iterator[Claim]:
    """What a bundle says of the machine that made it: nothing proves it, and where it is said of this machine too, that is all there is."""
    for name, was, here in (("versions", _versions(stated), _versions(fresh)), ("isolation", stated.sandbox, fresh.sandbox)):
        if was == here:
            yield holds(name, f"said to be those of this machine: {here}" if name == "versions" else "said to be as on this machine")
        else:
            yield unchecked(name, f"told, and nothing proves it: {was or 'nothing'} in the bundle, {here or 'nothing'} here")


def _versions(evaluation: Evaluation) -> str:
    return ", ".join(f"{name} {version}" for name, version in sorted(evaluation.versions.items()))


def _executor(evaluation: Evaluation) -> str:
    return evaluation.correctness.executor if evaluation.correctness else ""


def _verdict(bundle: Bundle, fresh: Evaluation) -> Claim:
    stated = bundle.evaluation.verdict
    note = f": {fresh.notes[0]}" if fresh.notes else ""
    rule = f" ({fresh.rule})" if fresh.rule else ""
    if fresh.verdict is Verdict.INFRASTRUCTURE:
        if _executor(bundle.evaluation) == "gpu":
            return unchecked("correct here", f"it was judged on a GPU, and this machine cannot judge it{note}")
        return fails("correct here", f"the evaluation cannot be repeated{note}")
    if fresh.verdict is not stated or fresh.rule != bundle.evaluation.rule:
        return fails("correct here", f"{fresh.verdict}{rule} here, {stated} in the bundle{note}")
    if fresh.correctness is None:
        return holds("correct here", f"{stated}{rule}, as in the bundle")
    checked = fresh.correctness
    where = "the GPU" if checked.executor == "gpu" else "the interpreter"
    return holds("correct here", f"{stated}: {checked.calls} calls with fresh seeds on {where} at {'; '.join(checked.sizes)}")


def _errors(stated: Evaluation, fresh: Evaluation) -> Claim:
    assert stated.correctness is not None
    assert fresh.correctness is not None
    here = max(fresh.correctness.outputs, key=lambda error: error.severity)
    there = max(stated.correctness.outputs, key=lambda error: error.severity)
    words = f"{here.relative_l2:.1e} relative L2 here (limit {here.limit_relative_l2:.1e}), {there.relative_l2:.1e} in the bundle"
    if _executor(stated) != _executor(fresh):
        return unchecked("errors", f"{words}, which was judged by the {_executor(stated)}")
    return either("errors", here.severity <= ERRORS * there.severity + ERRORS_SLACK, words)


def _class(stated: Evaluation, fresh: Evaluation) -> Claim:
    if "unknown" in (stated.provenance, fresh.provenance):
        return unchecked("class", f"{stated.provenance} in the bundle, {fresh.provenance} here")
    return either("class", stated.provenance == fresh.provenance, f"{stated.provenance} in the bundle, {fresh.provenance} here")


def _estimate(stated: Estimate, was: Evaluation, fresh: Evaluation) -> Claim:
    found = fresh.estimate
    if found is None or (found.model, found.target) != (stated.model, stated.target):
        other = f"by {found.model} for {found.target}" if found else "nothing"
        return unchecked("estimated time", f"estimated by {stated.model} for {stated.target}, here {other}")
    words = f"{found.candidate_us:,.4g} µs here, {stated.candidate_us:,.4g} in the bundle, both ESTIMATED for {stated.target}"
    if _near(found.candidate_us, stated.candidate_us, ESTIMATES) and _near(found.eager_us, stated.eager_us, ESTIMATES):
        return holds("estimated time", words)
    if was.versions.get("triton") != fresh.versions.get("triton"):
        return unchecked("estimated time", f"{words}; another Triton compiled it")
    return fails("estimated time", words)


def _near(a: float, b: float, share: float) -> bool:
    return abs(a - b) <= share * max(a, b)


def _timing(stated: Timing, was: Evaluation, fresh: Evaluation) -> Iterator[Claim]:
    figure = f"{stated.candidate.median_us:,.4g} µs, {stated.tier}, {was.provenance} kernels, on {stated.device}"
    found = fresh.timing
    if found is None:
        yield unchecked("measured time", f"{figure}: this machine has no such GPU")
        return
    if found.device != stated.device:
        yield unchecked("measured time", f"{figure}: this machine has a {found.device}, and times of different devices do not compare")
        return
    yield either(
        "measured time",
        found.candidate.median_us <= stated.candidate.high_us * (1 + SESSIONS)
        or _near(found.candidate.median_us, stated.candidate.median_us, SESSIONS),
        f"{found.candidate.median_us:,.4g} µs here ({found.tier}), {stated.candidate.median_us:,.4g} µs in the bundle ({stated.tier})",
    )
    for name, (value, low, high) in stated.speedups.items():
        yield _speedup(name, (value, low, high), found, was, fresh)
    if stated.tier is Tier.SEALED:
        yield either("tier here", found.tier is Tier.SEALED, f"{found.tier} here, {stated.tier} in the bundle")


def _speedup(name: str, stated: tuple[float, float, float], found: Timing, was: Evaluation, fresh: Evaluation) -> Claim:
    title, (value, low, high) = f"speed-up against {name}", stated
    said = f"{value:.2f}x [{low:.2f}, {high:.2f}] in the bundle"
    if name not in found.speedups:
        return unchecked(title, f"{said}; {name} could not be timed here")
    ours = found.speedups[name]
    words = f"{ours[0]:.2f}x [{ours[1]:.2f}, {ours[2]:.2f}] here, {said}"
    if ours[2] * (1 + SESSIONS) >= low:
        return holds(title, words)
    if was.versions.get("torch") != fresh.versions.get("torch"):
        return unchecked(title, f"{words}; another torch runs the baseline")
    return fails(title, words)
