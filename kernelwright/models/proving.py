"""Proves a package on the whole model, and takes out again what makes it wrong or does not make it faster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from kernelwright.models.operators import Listener
from kernelwright.models.records import ModelSettings, OperatorOutcome, Outcome, Ratio
from kernelwright.models.ways import COPIED, PAIRS, PLAIN, as_compiled, no_faster
from tools.evaluation.supervisor.timed.statistics import speedup
from tools.models.jobs import EAGER, IN_GRAPH, OURS, WITHOUT, Proof, ProofJob
from tools.models.neighbours import neighbours
from tools.models.packaging.delivered import Delivered
from tools.models.packaging.flashinfer import EXPORTS
from tools.models.packaging.hub import VARIANT
from tools.models.packaging.package import write_package
from tools.records import HardwareSheet
from tools.scratch import PREFIX, scratch

Instead = Callable[[Outcome], tuple[Outcome, tuple[Delivered, ...]]]
"""Has operators made in the place of those that were taken out; gives the outcome with theirs in it."""
MORE_ROUNDS = 5
"""Times as many rounds where the first did not tell whether an operator helps: an interval of less than half the width."""
PACKAGE_SUFFIXES = (".py",)
AROUND = (VARIANT.parts[0], EXPORTS)
"""Folders of a package that it does not need itself."""


class Provable(Protocol):
    """A model that can be run with a package: in processes of its own, or here."""

    @property
    def device(self) -> str:
        """`cuda` or `cpu`."""

    def prove(self, job: ProofJob) -> Proof:
        """Run it with and without the package."""


@dataclass(frozen=True)
class Proving:
    """What proofs of one model have in common."""

    processes: Provable
    file: Path
    source: str
    factory: str
    sheet: HardwareSheet
    settings: ModelSettings
    timed: bool
    seed: int
    listener: Listener

    def settle(self, outcome: Outcome, delivered: Sequence[Delivered], instead: Instead) -> tuple[Outcome, tuple[Delivered, ...]]:
        """Prove; take out what has to go, and prove the rest again until it stands. Compilers are timed with what stands alone.

        Once, `instead` may have something else made in the place of what went; that is proven in the same way.
        """
        outcome, left = self._narrowed(outcome, tuple(delivered))
        outcome, more = instead(outcome)
        if more:
            outcome, left = self._narrowed(outcome, (*left, *more))
        outcome = outcome.model_copy(update={"expected": expected_gain(outcome)})
        if left and self.timed and self.settings.compiled and outcome.proof.holds:
            # a compiler may take longer than its user waits
            self.listener({"event": "proven", "outcome": outcome, "delivered": left})
            outcome, left = self._with_compilers(outcome, left)
        return outcome, left

    def _narrowed(self, outcome: Outcome, left: tuple[Delivered, ...]) -> tuple[Outcome, tuple[Delivered, ...]]:
        """Prove until nothing has to go; where it is not sure that an operator helps, once with more rounds first."""
        rounds = self.settings.rounds
        known: Proof | None = None
        while left:
            proof = self.prove(left, compiled=self.settings.compiled and not self.timed, rounds=rounds, known=known)
            outcome = outcome.model_copy(update={"proof": proof, "ratios": ratios(proof, outcome.capture.weights)})
            going = self._going(outcome, left)
            if not going:
                break
            if rounds == self.settings.rounds and self._is_unsure(outcome, left, going):
                rounds *= MORE_ROUNDS
                known = proof
                continue
            outcome = outcome.model_copy(update={"operators": tuple(_taken_out(one, going) for one in outcome.operators)})
            left, known = tuple(one for one in left if one.group.name not in going), None
        return outcome, left

    def _with_compilers(self, outcome: Outcome, left: tuple[Delivered, ...]) -> tuple[Outcome, tuple[Delivered, ...]]:
        """Time the model under torch.compile too, which gets the original in workloads in which operators do not make that faster.

        Where they step aside in some of them it is timed again with what is left.
        """
        aside: dict[str, float] = {}
        last: Proof | None = None
        while True:
            proof = self.prove(left, compiled=True, shares=False, known=outcome.proof)
            if not proof.times and last is None:
                told = (*outcome.proof.notes, *proof.notes, f"Not timed under torch.compile. {proof.what}".strip())
                return outcome.model_copy(update={"proof": outcome.proof.model_copy(update={"notes": tuple(dict.fromkeys(told))})}), left
            if not proof.times:
                assert last is not None
                told = (*_told(aside), COPIED, "It was not timed again with those that are left.")
                return _compared(outcome, as_compiled(last, aside), told), left
            if proof.opaque:
                left = tuple(replace(one, seen=False) for one in left)
            called = {name for one in left if one.in_compilers for name in one.group.calls}
            used = [name for name in outcome.capture.weights if name in called and name not in aside]
            slower = no_faster(proof, used)
            aside |= slower
            left, last = tuple(one.stepping_aside(slower) for one in left), proof
            if not any(one.in_compilers for one in left):
                return _compared(outcome, as_compiled(proof, outcome.capture.weights), (*_told(aside), COPIED)), left
            if not slower:
                return _compared(outcome, proof, _told(aside)), left

    def prove(
        self, delivered: Sequence[Delivered], *, compiled: bool, shares: bool = True, rounds: int = 0, known: Proof | None = None
    ) -> Proof:
        """Run the model with these operators; with `shares` without each of them in turn, too.

        Where it is `known` that these are right, they are only timed.
        """
        self.listener({"event": "proving", "operators": [one.group.name for one in delivered]})
        settings = self.settings
        job = ProofJob(
            file=str(self.file.absolute()),
            source=self.source,
            beside=neighbours(self.file) if self.source else {},
            factory=self.factory,
            autocast=settings.autocast,
            device=self.processes.device,
            policy=settings.run.policy,
            sheet=self.sheet,
            package=_texts(delivered),
            operators=tuple(one.group.name for one in delivered) if shares else (),
            timed=self.timed,
            compiled=compiled,
            max_autotune=settings.max_autotune and compiled and self.timed,
            rounds=rounds or settings.rounds,
            seed=self.seed,
            threads=1,
            limit_s=settings.proof_s,
            known=known.model_copy(update={"times": {}}) if known else None,
        )
        return self.processes.prove(job)

    def _going(self, outcome: Outcome, left: Sequence[Delivered]) -> dict[str, str]:
        """Say which operators go, and why."""
        proof = outcome.proof
        if proof.what:
            return {}
        unused = {one.group.name: "its kernels were never reached" for one in left if not proof.hits.get(one.group.name)}
        if not proof.holds and not unused:
            # what it is cannot be seen in the sum of all: the one that the model gains least by goes first
            return {left[-1].group.name: "the model's outputs were not right with it"}
        gains = brought(outcome, [one.group.name for one in left])
        slow = {name: ratio for name, ratio in gains.items() if ratio.low <= 1.0 and name not in unused}
        if unused or not slow:
            return unused
        # one at a time: what costs the model more than it brings hides what others bring
        name, ratio = min(slow.items(), key=lambda item: item[1].value)
        return {name: f"the model is no faster with it ({ratio.value:.3f}x [{ratio.low:.3f}, {ratio.high:.3f}])"}

    def _is_unsure(self, outcome: Outcome, left: Sequence[Delivered], going: Mapping[str, str]) -> bool:
        """Whether what has to go seems to help, by less than the noise."""
        gains = brought(outcome, [one.group.name for one in left])
        return all(name in gains and gains[name].low <= 1.0 < gains[name].value for name in going)


def served(proof: Proof, weights: Mapping[str, float], way: str = EAGER) -> str:
    """Name how the model is fastest, with the operators or without: as it is, or in a CUDA graph. What counts is what they bring there.

    Where the host is what takes time, the fastest kernel brings nothing in eager mode; who serves such a model records it.
    """
    ways = next(pair for pair in PLAIN if pair[0] == way)
    plain, graphed = (
        [sum(weights[name] * sorted(each)[len(each) // 2] for name, each in times.items()) for times in found if times]
        for found in ([proof.times.get(f"{one}{ending}", {}) for one in ways] for ending in ("", IN_GRAPH))
    )
    return IN_GRAPH if plain and graphed and min(graphed) < min(plain) else ""


def brought(outcome: Outcome, names: Sequence[str]) -> dict[str, Ratio]:
    """Find what the model gains by each operator as it is served: by leaving it out, or of the only one against eager.

    Whether an operator stays is decided by that.
    """
    way = served(outcome.proof, outcome.capture.weights)
    over = {f"{WITHOUT}{name}" if len(names) > 1 else EAGER: name for name in names}
    found = {one.over.removesuffix(IN_GRAPH): one for one in outcome.ratios if one.under == f"{OURS}{way}"}
    return {name: found[one] for one, name in over.items() if one in found}


def _told(aside: Mapping[str, float]) -> tuple[str, ...]:
    """Say in which workloads operators step aside."""
    named = ", ".join(f"{name} ({ratio:.2f}x)" if ratio else f"{name} (not timed)" for name, ratio in aside.items())
    return (f"Under torch.compile operators step aside where it was no faster with them: {named}.",) if aside else ()


def _compared(outcome: Outcome, proof: Proof, notes: Sequence[str]) -> Outcome:
    """Put what was found under a compiler into the outcome, with the operators' shares from before."""
    shares = tuple(one for one in outcome.ratios if one.over.startswith(WITHOUT))
    found = (*ratios(proof, outcome.capture.weights), *shares)
    timed, whole = (list(each.times.get(OURS, {})) for each in (proof, outcome.proof))
    if len(timed) < len(whole):
        # eager was timed with all of them before
        eager = (EAGER, f"{EAGER}{IN_GRAPH}")
        kept = tuple(one for one in outcome.ratios if one.over in eager)
        found = (*kept, *(one for one in found if one.over not in eager))
        said = f"Times by way, and torch.compile's figures, are of {', '.join(timed)} alone; eager's speed-up is of all workloads."
        notes = (*notes, said)
    return outcome.model_copy(update={"proof": proof.model_copy(update={"notes": (*proof.notes, *notes)}), "ratios": found})


def ratios(proof: Proof, weights: dict[str, float]) -> tuple[Ratio, ...]:
    """Compare ways of running the model: each with and without operators, ours with the best baseline, and without each operator."""
    totals = {
        way: [sum(weights[name] * times[name][turn] for name in times) for turn in range(min(map(len, times.values())))]
        for way, times in proof.times.items()
    }
    without = [(way, OURS) for way in totals if way.startswith(WITHOUT) and not way.endswith(IN_GRAPH)]
    graphed = [(f"{over}{IN_GRAPH}", f"{under}{IN_GRAPH}") for over, under in without]
    # what a graph cannot hold is run without one
    wanted = [(over if over in totals else over.removesuffix(IN_GRAPH), under) for over, under in (*PAIRS, *without, *graphed)]
    return tuple(_ratio(over, under, totals) for over, under in wanted if over in totals and under in totals)


def expected_gain(outcome: Outcome) -> float:
    """Work out the model's speed-up by Amdahl's law from shares of the capture and the operators' own speed-ups."""
    shares = {group.name: group.share for group in outcome.capture.groups}
    kept = [one for one in outcome.operators if one.kept and one.speedup]
    left = 1.0 - sum(shares[one.name] * (1.0 - 1.0 / one.speedup) for one in kept)
    return 1.0 / max(left, 1e-3)


def _ratio(over: str, under: str, totals: dict[str, list[float]]) -> Ratio:
    value, low, high = speedup(totals[over], totals[under])
    return Ratio(over=over, under=under, value=value, low=low, high=high)


def _taken_out(one: OperatorOutcome, going: dict[str, str]) -> OperatorOutcome:
    return one.model_copy(update={"taken_out": going[one.name]}) if one.name in going else one


def _texts(delivered: Sequence[Delivered]) -> dict[str, str]:
    """Write the package to see its files, without the evidence."""
    with scratch(f"{PREFIX}package-") as folder:
        write_package(folder, "a model", "", [replace(one, evidence=None) for one in delivered], {})
        return package_texts(folder)


def package_texts(folder: Path) -> dict[str, str]:
    """Read the files of a package that it needs itself."""
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix in PACKAGE_SUFFIXES and path.relative_to(folder).parts[0] not in AROUND
    }
