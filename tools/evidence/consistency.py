"""A bundle checked against itself: what its figures must be if its own raw data are true. Nothing of it is run."""

from __future__ import annotations

import math
from collections.abc import Iterator

from tools.cost.estimate import MODEL, estimate_reference, estimate_time
from tools.errors import UserError
from tools.evaluation.supervisor.timed import plausibility
from tools.evaluation.supervisor.timed.statistics import sample, speedup
from tools.evaluation.weighted import added
from tools.evidence.bundle import Bundle, candidate_id
from tools.evidence.claims import Claim, either, fails, holds, unchecked
from tools.hardware import load_sheet, sheet_names
from tools.records import HardwareSheet, OutputError, PrecisionPolicy, RawTimes, Sample, Tier, Timing, Verdict

EQUAL = 1e-9
"""Relative difference of figures that are computed anew from the same numbers."""

EQUAL_INTERVAL = 0.02
"""The same for ends of a bootstrap interval: another release of numpy may draw other samples."""

MOST_TIMES = 100_000
"""Raw times that are resampled at most: a stranger's bundle must not fill the memory."""

_BY_TRUST = (Tier.IN_PROCESS, Tier.BRACKETED, Tier.SEALED)


def policy_claim(bundle: Bundle, demanded: PrecisionPolicy | None) -> Claim:
    """Say whether the policy is one a reader should accept: as loose as it is named, and no looser than the one `demanded`."""
    policy, standard = bundle.problem.policy, PrecisionPolicy()
    words = f"{policy}, {policy.factor:g} times the reference's own error"
    if demanded is not None:
        looser = any(getattr(policy, field) > getattr(demanded, field) for field in ("factor", "tolerance", "worst_row_tolerance"))
        good = (policy.name == demanded.name or _implies(policy, demanded)) and not looser
        return either("policy", good, f"{words}; asked for: {demanded}, {demanded.factor:g} times")
    if policy.factor > standard.factor:
        return fails("policy", f"{words}: looser than the {standard.factor:g} times that every policy allows")
    if policy.tolerance > 0:
        return unchecked(
            "policy",
            f"{words}: whether that is good enough is for you to say; `--policy {policy.name}` refuses it",
        )
    return holds("policy", words)


def _implies(policy: PrecisionPolicy, demanded: PrecisionPolicy) -> bool:
    """Whether what meets a policy meets the one demanded too: what is exact is as PyTorch comes, or better."""
    return (policy.name, demanded.name) == ("exact", "default")


def consistency(bundle: Bundle) -> Iterator[Claim]:
    """Check everything that follows from other things in the bundle."""
    yield _names(bundle)
    if bundle.problem.shapes:
        yield from _shapes(bundle)
    else:
        yield from _judged(bundle)
    if bundle.baselines:
        yield _baselines(bundle)
    for name, baselines in bundle.other_baselines.items():
        told = f"{baselines.best_us:,.4g} µs ({baselines.tier})" if baselines.samples or baselines.estimate else "no time"
        yield unchecked(f"flags of {name}", f"the reference by itself under them: {told}")


def _judged(bundle: Bundle) -> Iterator[Claim]:
    """Check what was found at one shape."""
    yield _verdict(bundle)
    yield _limits(bundle)
    yield _seeds(bundle)
    yield _hardware(bundle)
    if bundle.evaluation.timing:
        yield from _timing(bundle, bundle.evaluation.timing)
    if bundle.evaluation.estimate:
        yield _estimate(bundle)


def _shapes(bundle: Bundle) -> Iterator[Claim]:
    """Check each shape of the problem by itself, then that the figures of all follow from theirs."""
    evaluation, shapes = bundle.evaluation, bundle.problem.shapes
    if evaluation.verdict is not Verdict.PASS:
        yield unchecked("verdict", f"{evaluation.verdict} at one of {len(shapes)} shapes: its figures are not in the bundle")
        return
    if [(one.name, one.weight) for one in evaluation.shapes] != [(one.name, one.weight) for one in shapes]:
        yield fails("verdict", "it was judged at other shapes, or with other weights, than the problem has")
        return
    for shape, one in zip(shapes, evaluation.shapes, strict=True):
        part = bundle.model_copy(update={"problem": bundle.problem.at(shape), "evaluation": one.evaluation})
        yield from (claim.model_copy(update={"name": f"{claim.name} ({shape.name})"}) for claim in _judged(part))
    whole = added(shapes, [one.evaluation for one in evaluation.shapes])
    same = all(getattr(whole, field) == getattr(evaluation, field) for field in ("correctness", "timing", "estimate"))
    yield either("weighted", same, f"the figures of all {len(shapes)} shapes together follow from each one's, by the weights")


def _names(bundle: Bundle) -> Claim:
    named = bundle.evaluation.candidate
    good = named == candidate_id(bundle.problem, bundle.kernel) and (bundle.profile is None or bundle.profile.candidate == named)
    if good:
        return holds("names", "the evaluation is of this kernel on this problem under this policy")
    return fails("names", f"the evaluation is of candidate {named}: kernel, problem or policy are not those that were judged")


def _verdict(bundle: Bundle) -> Claim:
    evaluation = bundle.evaluation
    if evaluation.weakened:
        return fails("verdict", f"defences were switched off: {', '.join(evaluation.weakened)}")
    outputs = evaluation.correctness.outputs if evaluation.correctness else ()
    if evaluation.verdict is Verdict.PASS:
        expected = [spec.name for spec in bundle.problem.abi.outputs]
        missing = [name for name in expected if name not in {error.output for error in outputs}]
        if missing or len(outputs) != len(expected):
            return fails("verdict", f"PASS, but no errors are given for {', '.join(missing) or 'outputs of the ABI alone'}")
        return holds("verdict", "PASS: every output of the ABI is within its limits")
    if evaluation.verdict is Verdict.WRONG and outputs and all(error.passed for error in outputs):
        return fails("verdict", "WRONG, but every error is within its limit")
    return holds("verdict", f"{evaluation.verdict} does not contradict the errors")


def _limits(bundle: Bundle) -> Claim:
    """A limit is at least what the policy gives for the reference's own error; it may be more where inputs leave fewer digits."""
    checked = bundle.evaluation.correctness
    if checked is None:
        return unchecked("limits", f"{bundle.evaluation.verdict} came before any error was measured")
    policy = bundle.problem.policy
    for error in checked.outputs:
        if why := _bad_limit(error, policy):
            return fails("limits", f"{error.output}: {why}")
    return holds("limits", f"not below {policy.factor:g} times the reference's own errors")


def _bad_limit(error: OutputError, policy: PrecisionPolicy) -> str:
    pairs = (
        (error.limit_relative_l2, error.reference_relative_l2, policy.tolerance),
        (error.limit_worst_row, error.reference_worst_row, policy.worst_row_tolerance),
    )
    for limit, own, tolerance in pairs:
        if not math.isfinite(limit):
            return f"its limit is {limit}"
        # integers must be exact, whatever the reference's own error
        allowed = max(policy.factor * own if math.isfinite(own) else 0.0, tolerance)
        if limit > 0 and limit < allowed * (1 - EQUAL):
            return f"its limit {limit:.3g} is not the one that policy “{policy}” gives ({allowed:.3g})"
    return ""


def _seeds(bundle: Bundle) -> Claim:
    evaluation = bundle.evaluation
    checked = evaluation.correctness
    if checked is None:
        return unchecked("seeds", f"{evaluation.verdict} came before any call was judged")
    planned = [one for one in evaluation.seeds if one.purpose == "check"]
    if not planned:
        return fails("seeds", "none are given")
    sizes = {one.size for one in planned}
    if unknown := sorted(set(checked.sizes) - sizes):
        return fails("seeds", f"none are given for the size {unknown[0]}")
    calls = sum(len(one.calls) for one in planned)
    drawn = [call.seed for one in evaluation.seeds for call in one.calls]
    if checked.calls > calls or len(set(drawn)) != len(drawn):
        return fails("seeds", f"{checked.calls} calls were judged, {calls} planned, {len(set(drawn))} of {len(drawn)} seeds differ")
    return holds("seeds", f"{len(drawn)}, all different, for {checked.calls} judged calls at {len(checked.sizes)} sizes; told, not proved")


def own_sheet(bundle: Bundle) -> HardwareSheet | None:
    """Find this version's sheet of the bundle's device; None where it has none."""
    try:
        return load_sheet(bundle.hardware.name)
    except UserError:
        return None


def _hardware(bundle: Bundle) -> Claim:
    timing, sheet = bundle.evaluation.timing, bundle.hardware
    if timing and timing.device != sheet.title:
        if timing.device not in [load_sheet(name).title for name in sheet_names()]:
            return unchecked("hardware", f"timed on {timing.device}, which has no sheet here, with that of {sheet.title}")
        return fails("hardware", f"timed on {timing.device}, but the sheet is of {sheet.title}")
    ours = own_sheet(bundle)
    if ours is None:
        return unchecked("hardware", f"this version has no sheet of {sheet.title}")
    different = [name for name, value in ours.model_dump(exclude={"sources"}).items() if getattr(sheet, name) != value]
    if different:
        return unchecked("hardware", f"this version's sheet of {sheet.title} has other figures: {', '.join(different)}")
    return holds("hardware", f"{sheet.title}, as this version's sheet has it")


def _timing(bundle: Bundle, timing: Timing) -> Iterator[Claim]:
    checked = bundle.evaluation.correctness
    if checked is None or checked.executor != "gpu":
        yield fails("timing", "a time was measured, but correctness was not judged on a GPU")
    raw = timing.raw
    if raw is None:
        yield unchecked("timing", "no raw times are given")
        return
    if max(map(len, (raw.candidate, raw.packing, *raw.baselines.values()))) > MOST_TIMES:
        yield fails("timing", f"more than {MOST_TIMES:,} raw times: no session takes that many")
        return
    try:
        yield _samples(timing, raw)
        yield _speedups(timing, raw)
        yield _tier(timing, raw)
        yield _plausible(bundle, timing, raw)
    except (ValueError, ArithmeticError, IndexError) as error:
        yield fails("timing", f"the raw times are no times: {error}")


def _samples(timing: Timing, raw: RawTimes) -> Claim:
    given: dict[str, tuple[Sample | None, tuple[float, ...]]] = {"candidate": (timing.candidate, raw.candidate)}
    given |= {name: (timing.baselines.get(name), times) for name, times in raw.baselines.items()}
    given |= {"bracket": (timing.bracket, raw.bracket)} if timing.bracket else {}
    given |= {"packing": (timing.packing.time, raw.packing)} if timing.packing else {}
    if set(raw.baselines) != set(timing.baselines):
        return fails("medians", "raw times and medians are of different baselines")
    for name, (stated, times) in given.items():
        if not times or not all(math.isfinite(one) and one > 0 for one in times):
            return fails("medians", f"{name}: its raw times are missing or no times")
        found = sample(times)
        if stated is None or stated.count != found.count or not all(map(_close, _figures(stated), _figures(found))):
            said = f"{stated.median_us:.4g} µs of {stated.count}" if stated else "nothing"
            return fails("medians", f"{name}: the bundle says {said}, its raw times {found.median_us:.4g} µs of {found.count}")
    return holds("medians", f"medians and quartiles follow from the raw times of {', '.join(given)}")


def _figures(one: Sample) -> tuple[float, float, float]:
    return one.median_us, one.low_us, one.high_us


def _close(a: float, b: float, share: float = EQUAL) -> bool:
    return math.isclose(a, b, rel_tol=share)


def _speedups(timing: Timing, raw: RawTimes) -> Claim:
    if set(timing.speedups) != set(raw.baselines):
        return fails("speed-up", "raw times and speed-ups are of different baselines")
    for name, stated in timing.speedups.items():
        value, low, high = speedup(raw.baselines[name], raw.candidate)
        if not (_close(stated[0], value) and _close(stated[1], low, EQUAL_INTERVAL) and _close(stated[2], high, EQUAL_INTERVAL)):
            said = f"{stated[0]:.3f}x [{stated[1]:.3f}, {stated[2]:.3f}]"
            return fails("speed-up", f"against {name}: the bundle says {said}, its raw times {value:.3f}x [{low:.3f}, {high:.3f}]")
    return holds("speed-up", f"ratios and intervals follow from the raw times of {', '.join(timing.speedups)}")


def _tier(timing: Timing, raw: RawTimes) -> Claim:
    if timing.tier is Tier.SEALED:
        return unchecked("tier", "sealed: figures cannot show how a kernel was launched")
    allowed = plausibility.tier(raw.candidate, raw.bracket)
    good = _BY_TRUST.index(timing.tier) <= _BY_TRUST.index(allowed)
    return either("tier", good, f"{timing.tier}; the supervisor's clock allows {allowed}")


def _plausible(bundle: Bundle, timing: Timing, raw: RawTimes) -> Claim:
    median = timing.candidate.median_us
    if plausibility.is_impossible(median, bundle.problem, own_sheet(bundle) or bundle.hardware, packs=timing.packing is not None):
        return fails("plausible", f"a median of {median:.3g} µs is less than the device needs to read the inputs once")
    if not raw.bracket or raw.idle_event:
        # earlier versions bracketed single calls on an idle device
        return unchecked("plausible", "not below the device's floor; no times of chained calls are given")
    if gap := plausibility.hidden_us(raw.candidate, raw.bracket):
        return fails("plausible", f"in chains a call takes {gap:.4g} µs more than its figure: work runs outside of its events")
    return holds("plausible", "not below the device's floor, and the two clocks agree")


def _estimate(bundle: Bundle) -> Claim:
    evaluation = bundle.evaluation
    stated = evaluation.estimate
    assert stated is not None
    if evaluation.timing:
        return fails("estimate", "a time is both measured and estimated")
    if stated.model != MODEL:
        return unchecked("estimate", f"made by {stated.model}; this version has {MODEL}")
    try:
        found = estimate_time(bundle.problem, evaluation.launches, evaluation.kernels, bundle.hardware)
    except (ValueError, ArithmeticError, LookupError) as error:
        return fails("estimate", f"its launches cannot be modelled: {error}")
    good = (
        stated.target == bundle.hardware.name
        and _close(stated.candidate_us, found.candidate_us)
        and _close(stated.eager_us, found.eager_us)
    )
    words = f"{stated.candidate_us:,.4g} µs beside {stated.eager_us:,.4g} µs of eager"
    if good:
        return holds("estimate", f"{words}: as {MODEL} gives them for the recorded launches")
    return fails("estimate", f"{words}; {MODEL} gives {found.candidate_us:,.4g} and {found.eager_us:,.4g} for the recorded launches")


def _baselines(bundle: Bundle) -> Claim:
    baselines, timing = bundle.baselines, bundle.evaluation.timing
    assert baselines is not None
    if timing is None:
        if baselines.estimate is None or baselines.estimate.model != MODEL:
            return unchecked("baselines", f"not estimated by {MODEL}")
        try:
            found = estimate_reference(bundle.problem, bundle.hardware).eager_us
        except (ValueError, ArithmeticError, LookupError) as error:
            return fails("baselines", f"the reference cannot be modelled: {error}")
        good = _close(baselines.estimate.eager_us, found)
        return either("baselines", good, f"eager {baselines.estimate.eager_us:,.4g} µs, estimated; {MODEL} gives {found:,.4g}")
    ratios = [own.median_us / timing.baselines[name].median_us for name, own in baselines.samples.items() if name in timing.baselines]
    words = ", ".join(f"{ratio:.2f}" for ratio in ratios) or "none"
    return unchecked("baselines", f"a session of its own; times over those beside the candidate: {words}")
