"""The builder: imports the candidate without a GPU, dry-runs it on tensors without contents, and compiles what it launches."""

from __future__ import annotations

import base64
import contextlib
import traceback
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tools.evaluation.untrusted import composites, extensions, fake_device, gpu_stand_in, graph_stand_in, loading, misuse
from tools.evaluation.untrusted.extension_dry_run import Followed
from tools.evaluation.untrusted.launch_recorder import Recorder
from tools.evaluation.wire import kernel_cache, source_text
from tools.evaluation.wire.jobs.builder import BuildAnswer, BuilderJob, KernelBinary
from tools.evaluation.wire.launch_plan import LaunchPlan
from tools.evaluation.wire.phase import Phase
from tools.records import ABI, Launch, ScalarSpec

if TYPE_CHECKING:
    import torch

MAX_ANSWER_BYTES = 64 << 20
MAX_LAUNCHES = 2000
_ERROR_LINES = 30
_READS_VALUES = ("DataDependentOutputException", "DynamicOutputShapeException", "GuardOnDataDependentSymNode")
"""What torch raises where host code asks a tensor without contents for some."""


def build(phase: Phase) -> None:
    """Build and write the answer."""
    job = BuilderJob.model_validate_json(phase.job)
    # should the dry run end the process, the import at least is known to have worked
    dead = BuildAnswer(status="opaque", notes=("The host code ended the process that followed it without a GPU: launches are not known.",))
    data = _build(job, phase, dead).model_dump_json().encode()
    if len(data) > MAX_ANSWER_BYTES:
        data = BuildAnswer(status="opaque", reason="the compiled kernels are too large to keep").model_dump_json().encode()
    phase.answer(data)


def _build(job: BuilderJob, phase: Phase, interim: BuildAnswer) -> BuildAnswer:
    gpu_stand_in.install(job.sheet)
    recorder = Recorder(job.sheet, launchers=job.launchers)
    recorder.install()
    graph_stand_in.install(recorder)
    composites.install(recorder)
    gpu_stand_in.follow_choices(recorder.choose)
    if source_text.builds_extension(job.source):
        extensions.install(job.sheet, lambda module: Followed(module, recorder))
    try:
        module = loading.import_candidate(job.source, phase.scratch)
    except BaseException as error:
        return BuildAnswer(status="failed", reason=_telling(error))
    native = _native_kernels()
    known: dict[str, Any] = {"kernels": native, "cache": _packed() if native else ""}
    phase.answer(interim.model_copy(update=known).model_dump_json().encode())
    try:
        plans, packing = _dry_run(module, job.abi, recorder)
    except BaseException as error:
        if _is_cause(recorder.failure, error):
            return BuildAnswer(status="failed", reason=_telling(error))
        traceback.print_exc(limit=-6)
        note = f"The host code could not be followed without a GPU ({type(error).__name__}: {_first_line(error)}): launches are not known."
        return BuildAnswer(status="opaque", reason=_telling(error), notes=(note,), unsealable=_unfollowed(error), **known)
    plan, unsealable = _plan(plans, recorder)
    launches, binaries = tuple(recorder.launches[:MAX_LAUNCHES]), tuple(recorder.binaries.values())
    for abi in job.others:
        # these are compiled ahead of time to save time: one that fails here fails where it is run
        with contextlib.suppress(Exception):
            _dry_run(module, abi, recorder)
    taken: tuple[str, ...] = ()
    if job.misuses:
        with contextlib.suppress(Exception):
            taken = misuse.taken(module, job.abi, recorder)
    triton = tuple(KernelBinary(name=b.name, code=base64.b64encode(b.code).decode(), shared_bytes=b.shared_bytes) for b in binaries)
    return BuildAnswer(
        status="built",
        launches=launches,
        packing=packing,
        kernels=(*triton, *native),
        short_floats=tuple(sorted({name for b in binaries for name in b.short_floats})),
        notes=tuple(gpu_stand_in.notes),
        plan=plan,
        unsealable=unsealable,
        taken=taken,
        cache=_packed(),
    )


def _packed() -> str:
    folder = kernel_cache.cache_folder()
    return kernel_cache.pack(folder) if folder else ""


def _native_kernels() -> tuple[KernelBinary, ...]:
    """Machine code of what the candidate's extensions hold; none where it has none, or no tool reads it."""
    with contextlib.suppress(Exception):
        found = dict.fromkeys(extensions.binaries())
        return tuple(KernelBinary(name=name, code=base64.b64encode(code).decode(), shared_bytes=0) for name, code in found)
    return ()


def _plan(plans: list[LaunchPlan | None], recorder: Recorder) -> tuple[LaunchPlan | None, str]:
    """The plan that the last two calls of a dry run made, or why there is none."""
    if recorder.planner.reason:
        return None, recorder.planner.reason
    if plans[-1] is None or not _alike(plans[-2], plans[-1]):
        return None, "its first call differs from its second"
    return plans[-1], ""


def _alike(one: LaunchPlan | None, other: LaunchPlan | None) -> bool:
    """Whether two calls did the same; when Python let go of memory is not theirs to say."""
    plain = [
        plan and plan.model_copy(update={"buffers": tuple(buffer.model_copy(update={"until": -1}) for buffer in plan.buffers)})
        for plan in (one, other)
    ]
    return plain[0] == plain[1]


def _dry_run(module: Any, abi: ABI, recorder: Recorder) -> tuple[list[LaunchPlan | None], tuple[Launch, ...]]:
    """Call the model on tensors without contents, twice: what only the first call does is no part of a call.

    Where it captured a CUDA graph in that one it is called once more.
    Before that it packs its weights where it has a step for it, whose launches come beside the plans.
    """
    import torch

    device = fake_device.fake_name()
    with contextlib.ExitStack() as modes:
        modes.enter_context(torch.no_grad())
        modes.enter_context(fake_device.fake_device())
        modes.enter_context(fake_device.on_device(device))
        model = _made(module, abi)
        fake_device.move(model, device)
        inputs = [torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device=device) for spec in abi.inputs]
        modes.enter_context(recorder.library_mode())
        state = model.state_dict(keep_vars=True)
        parameters = [state[spec.name] for spec in abi.parameters if spec.name in state]
        recorder.launches.clear()
        recorder.planner.begin(inputs, parameters, abi.written_places)
        step = loading.packing_step(model)
        each_call = any(spec.dynamic for spec in abi.parameters)
        if step is not None and not each_call:
            step()
        packing = tuple(recorder.launches[:MAX_LAUNCHES])
        plans: list[LaunchPlan | None] = []
        while len(plans) < 2 or (len(plans) == 2 and recorder.planner.captures and not _alike(*plans)):
            recorder.launches.clear()
            recorder.planner.begin_call()
            gpu_stand_in.entered[0] = False
            if step is not None and each_call:
                step()
            if len(parameters) != len(abi.parameters):
                recorder.planner.refuse("its parameters are not the reference's")
            given = iter(inputs)
            result = model(*[a.value if isinstance(a, ScalarSpec) else next(given) for a in abi.arguments])
            recorder.planner.several_streams |= gpu_stand_in.entered[0]
            plans.append(recorder.planner.finish(loading.flatten(result)))
        return plans, packing


def _unfollowed(error: BaseException) -> str:
    """Say why nobody can know without a device what a candidate launches."""
    if type(error).__name__ in _READS_VALUES:
        return "its host code reads values from the device (.item(), .tolist(), an `if` on a tensor, a shape that depends on values)"
    return f"its host code could not be followed without a GPU ({type(error).__name__}: {_first_line(error)})"


def _made(module: Any, abi: ABI) -> torch.nn.Module:
    """Make the module on tensors without contents, or where its constructor reads some of its own, as many do, on real ones."""
    from torch._subclasses import fake_tensor

    try:
        return loading.make_model(module, abi)
    except Exception as error:
        if type(error).__name__ not in _READS_VALUES:
            raise
    # torch ships no types of it
    unset: Any = fake_tensor.unset_fake_temporarily
    with unset(), fake_device.on_device("cpu"):
        return loading.make_model(module, abi)


def _is_cause(failure: BaseException | None, error: BaseException | None) -> bool:
    """Whether the compiler's failure is what ended the dry run."""
    while error is not None:
        if error is failure:
            return True
        error = error.__cause__ or error.__context__
    return False


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0][:200]


def _causes(error: BaseException) -> Iterator[str]:
    """What lies behind an error, in words: Triton's compiler says where it stopped, and the error behind it says why."""
    while error.__cause__ is not None:
        error = error.__cause__
        yield "".join(traceback.format_exception_only(error))


def _telling(error: BaseException) -> str:
    """Last lines of a traceback, with the frames of the candidate alone; what the evaluator itself says needs none."""
    if isinstance(error, loading.InterfaceError):
        return str(error)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.endswith(loading.FILE)]
    lines = traceback.format_list(frames[-3:]) + traceback.format_exception_only(error)
    lines += [f"{said}\n" for said in _causes(error) if said.strip() not in "".join(lines)]
    text = "".join(lines).replace(str(loading.FILE), "candidate.py")
    return "\n".join(text.strip().splitlines()[-_ERROR_LINES:])[-4000:]
