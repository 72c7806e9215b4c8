"""Checks a package again, after an upgrade or on another machine: each operator by its evidence, and the whole model where it is given."""

from __future__ import annotations

import ast
import secrets
from collections.abc import Sequence
from pathlib import Path

from graphs.run.assembly import resolve_target
from kernelwright.api.judging import verify
from kernelwright.models.proving import package_texts, ratios
from kernelwright.models.records import Outcome, Ratio
from kernelwright.models.report import FACTS
from kernelwright.models.working import SEED_BITS, tried_here
from tools.errors import UserError
from tools.evidence.folder import read_bundle
from tools.models.apart import model_processes
from tools.models.jobs import PROOF_S, Proof, ProofJob
from tools.models.neighbours import neighbours
from tools.models.packaging.package import TRIED, tried_text
from tools.policies import load_policy
from tools.problems.source import read_source
from tools.records import PrecisionPolicy, Record, Tier, Verdict


class CheckedAgain(Record):
    """An operator of a package on this machine."""

    name: str
    verdict: str
    """Of its kernel with fresh seeds; in words where it could not be judged."""
    before: float
    """Speed-up by its evidence, against the better baseline; 0 where that has none."""
    now: float
    """The same here; 0 where there is none."""
    tier: str
    failed: tuple[str, ...]
    """Claims of the evidence that do not hold here."""

    @property
    def right(self) -> bool:
        """Whether its kernel passed."""
        return self.verdict == Verdict.PASS


class Recheck(Record):
    """What came of a package."""

    device: str
    operators: tuple[CheckedAgain, ...]
    proof: Proof | None
    """Of the whole model; None where it was not given."""
    ratios: tuple[Ratio, ...]
    noted: bool
    """Whether the package now says that it was tried here."""

    @property
    def holds(self) -> bool:
        """Whether everything that was checked is right."""
        return all(one.right for one in self.operators) and (self.proof is None or self.proof.holds)


def recheck(folder: Path, model: str = "", rounds: int = 30) -> Recheck:
    """Check a package in `folder`; wrong input raises UserError. `model` is the model's file, `FILE` or `FILE:FACTORY`."""
    bundles = sorted((folder / "evidence").glob("*/manifest.json"))
    if not (folder / TRIED).is_file():
        raise UserError(f"{folder} is no package.", "Name a folder that `kernelwright model` wrote.")
    if not bundles and not model:
        raise UserError(
            f"{folder} has no evidence: its operators were not judged by themselves.", "Give --model FILE, which is proven with them."
        )
    found = tuple(_again(folder, place.parent) for place in bundles)
    proof, times = prove_again(folder, model, rounds) if model else (None, ())
    sheet = resolve_target("")
    timed = all(one.right and one.tier != Tier.ESTIMATED for one in found) if found else bool(proof and proof.times)
    timed = timed and (proof is None or proof.holds)
    if timed:
        note_tried(folder / TRIED, tried_here(sheet.title))
    return Recheck(device=sheet.title, operators=found, proof=proof, ratios=times, noted=timed)


def _again(folder: Path, bundle: Path) -> CheckedAgain:
    kept = read_bundle(bundle)
    name = bundle.name
    if (folder / "kernels" / f"{name}.py").read_text() != kept.kernel:
        said = "the package's kernel is not the one that its evidence is of"
        return CheckedAgain(name=name, verdict=said, before=0.0, now=0.0, tier="", failed=("kernel",))
    report = verify(bundle)
    fresh = report.evaluation
    return CheckedAgain(
        name=name,
        verdict=fresh.verdict.value if fresh else "not judged",
        before=kept.evaluation.speedup or 0.0,
        now=(fresh.speedup or 0.0) if fresh else 0.0,
        tier=str(fresh.tier or "") if fresh else "",
        failed=tuple(claim.name for claim in report.failed),
    )


def _policy(folder: Path) -> PrecisionPolicy:
    """Read the policy of a package's evidence; one without evidence has the policy that its report names."""
    bundle = next(iter(sorted((folder / "evidence").glob("*/manifest.json"))), None)
    if bundle is not None:
        return read_bundle(bundle.parent).problem.policy
    return load_policy(Outcome.model_validate_json((folder / FACTS).read_text()).policy)


def prove_again(
    folder: Path, model: str, rounds: int, *, compiled: bool = True, max_autotune: bool = False, limit_s: float = PROOF_S
) -> tuple[Proof, tuple[Ratio, ...]]:
    """Run the whole model with a package and without it; workloads count by the weights that the package's report has."""
    name, _, factory = model.partition(":")
    file = Path(name)
    source = read_source(file)
    sheet = resolve_target("")
    report = Outcome.model_validate_json((folder / FACTS).read_text())
    with model_processes(title=sheet.title) as processes:
        job = ProofJob(
            file=str(file.absolute()),
            source=source,
            beside=neighbours(file),
            factory=factory,
            autocast=report.autocast,
            device=processes.device,
            policy=_policy(folder),
            sheet=sheet,
            package=package_texts(folder),
            operators=(),
            timed=processes.device != "cpu",
            compiled=compiled,
            max_autotune=max_autotune and processes.device != "cpu",
            rounds=rounds,
            seed=secrets.randbits(SEED_BITS),
            threads=1,
            limit_s=limit_s,
        )
        proof = processes.prove(job)
    weights = report.capture.weights
    known = {workload: weights.get(workload, 1.0) for each in proof.times.values() for workload in each}
    return proof, ratios(proof, known)


def note_tried(file: Path, here: tuple[str, str, str]) -> None:
    """Add this machine to those on which the kernels were tried."""
    values = {
        target.id: ast.literal_eval(node.value)
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    before: Sequence[tuple[str, str, str]] = values.get("TRIED", ())
    file.write_text(tried_text(values.get("MADE_FOR", ""), tuple(dict.fromkeys((*before, here)))))
