"""Judging without a search: any kernel file against a problem, and a bundle against this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from kernelwright.api.finishing import finish
from tools.evaluation import Baselines, EvaluationRequest, EvaluatorPool, LocalPool
from tools.evaluation.other_flags import other_baselines
from tools.evaluation.several import open_local
from tools.evaluation.supervisor.timed.compiling import COMPILE_S
from tools.evidence import Bundle, Origin, Report, Signature, Verifier, make_bundle, write_bundle
from tools.evidence.bundle import candidate_id
from tools.evidence.folder import check_place
from tools.hardware.devices import ALL, INTERPRETER, choose_devices
from tools.problems import load_problem
from tools.problems.source import read_source
from tools.records import DEFAULT_POLICY, Evaluation, HardwareSheet, PolicyName, PrecisionPolicy, Problem, Profile, Record, Verdict
from tools.references.reading import read_problem
from tools.scratch import PREFIX, scratch

Stage = Literal["search", "confirm"]


class Judgement(Record):
    """What `evaluate` found."""

    problem: Problem
    target: HardwareSheet
    evaluation: Evaluation
    notes: tuple[str, ...]
    """About the problem: what keeps its figures from meaning much."""
    other_baselines: dict[PolicyName, Baselines]
    """The reference under other policies' flags, by itself, as asked for; empty where the kernel has no time."""
    bundle: Path | None
    """The evidence bundle; None where none was asked for, or where the verdict says nothing about the kernel."""
    digest: str
    """Of the bundle."""


def evaluate(
    problem: str | Path,
    kernel: str | Path,
    *,
    target: str = "",
    policy: PrecisionPolicy = DEFAULT_POLICY,
    baselines: Sequence[PolicyName] = (),
    entry: str | None = None,
    stage: Stage = "confirm",
    timeout_s: float = 120.0,
    compile_s: float = COMPILE_S,
    bundle: str | Path | None = None,
    devices: str = ALL,
) -> Judgement:
    """Judge the kernel file `kernel`, which defines `ModelNew`, on the problem file `problem`; blocks until that is done.

    The reference is timed under the flags of `baselines`, too: named policies beside `policy`, whose flags always count.
    A bad kernel is a verdict. Raises UserError for wrong input and MachineError where this machine fails.
    """
    from graphs.run.assembly import resolve_target

    if bundle is not None:
        check_place(Path(bundle))
    source = read_source(Path(kernel))
    sheet = resolve_target(target)
    read = read_problem(Path(problem), policy, entry)
    loaded = read.problem
    request = EvaluationRequest(
        problem=loaded,
        variants=read.variants,
        candidate=candidate_id(loaded, source),
        source=source,
        target=sheet,
        stage=stage,
        timeout_s=timeout_s,
    )
    with scratch(f"{PREFIX}judged-") as folder:
        pool = open_local(folder, devices, sheet.title, compile_s=compile_s)
        evaluation, alone, others = finish(_judge(request, pool, baselines, alone=bundle is not None))
    made = None
    if bundle is not None and evaluation.verdict is not Verdict.INFRASTRUCTURE:
        made = make_bundle(request, evaluation, Origin.here(evaluator=pool.name), alone, _profile(request, evaluation, alone), others)
    digest = write_bundle(made, Path(bundle)) if made and bundle else ""
    return Judgement(
        problem=loaded,
        target=sheet,
        evaluation=evaluation,
        notes=read.notes,
        other_baselines=others,
        bundle=Path(bundle) if bundle and digest else None,
        digest=digest,
    )


async def _judge(
    request: EvaluationRequest, pool: EvaluatorPool, policies: Sequence[PolicyName], *, alone: bool
) -> tuple[Evaluation, Baselines | None, dict[PolicyName, Baselines]]:
    """Evaluate; where there is a figure to go with it, time the reference `alone` too if wanted, and under other `policies`."""
    try:
        evaluation = await pool.evaluate(request)
        baselines = await pool.baselines(request.problem, request.target) if alone and evaluation.tier else None
        others = await other_baselines(pool, request.problem, request.target, policies if evaluation.tier else ())
        return evaluation, baselines, others
    finally:
        await pool.close()


def _profile(request: EvaluationRequest, evaluation: Evaluation, baselines: Baselines | None) -> Profile | None:
    from tools.profiling.profile import profile_candidate

    if evaluation.verdict is not Verdict.PASS or baselines is None:
        return None
    return profile_candidate(request.problem, evaluation, baselines, request.target)


def verify(
    bundle: str | Path,
    *,
    run: bool = True,
    problem: str | Path | None = None,
    entry: str | None = None,
    policy: PrecisionPolicy | None = None,
    digest: str = "",
    signature: Signature | None = None,
) -> Report:
    """Re-check an evidence bundle: its files, its figures and, with `run`, its kernel on this machine with fresh seeds.

    Kernel and reference of the bundle run in the sandbox. `problem` is the user's own copy of the problem: it then takes the
    bundle's place, and is trusted. `policy` is what the bundle must not be looser than, `digest` what it must have, `signature` who must
    have signed that. Raises UserError where there is no bundle.
    """
    own_copy = load_problem(Path(problem), entry=entry) if problem else None
    verifier = Verifier(Path(bundle), digest=digest, signature=signature, policy=policy, own_copy=own_copy)
    with scratch(f"{PREFIX}verified-") as folder:
        return finish(_verify(verifier, folder, run=run))


async def _verify(verifier: Verifier, scratch: Path, *, run: bool) -> Report:
    pools: list[LocalPool] = []

    def open_pool(found: Bundle, wary: bool) -> LocalPool:
        # judged again as it was judged: by the interpreter, or on a GPU
        checked = found.evaluation.correctness
        interpreted = checked is not None and checked.executor == "interpreter"
        devices = choose_devices(INTERPRETER if interpreted else ALL, found.hardware.title)
        pools.append(LocalPool(scratch, devices[0] if devices else None, wary=wary))
        return pools[0]

    try:
        return await verifier.verify(open_pool if run else None)
    finally:
        for pool in pools:
            await pool.close()
