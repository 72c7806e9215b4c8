"""Weights packed in a step of their own: called before any call, recorded apart, timed by itself; what a forged plan may not do."""

from __future__ import annotations

import asyncio
import ctypes
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.agents.reviewer.cases import passed, timing
from tests.tools.evaluation import sealable
from tests.tools.evaluation.driver_library import compile_library
from tests.tools.evaluation.untrusted.test_sealed import inside
from tools.evaluation import EvaluationRequest, LocalPool
from tools.evaluation.untrusted.loading import InterfaceError, packing_step
from tools.evaluation.untrusted.sealed import SealedModel
from tools.evaluation.wire.driver_api import Driver
from tools.evaluation.wire.jobs.builder import BuildAnswer, BuilderJob
from tools.evaluation.wire.launch_plan import Fill, KernelLaunch, LaunchPlan
from tools.evaluation.wire.library_calls import LibraryCall, View, Word
from tools.evaluation.wire.library_operators import OPERATORS, WRITING
from tools.evaluation.wire.plan_faults import fault
from tools.evaluation.wire.source_text import declares_packing
from tools.hardware import load_sheet
from tools.problems import load_problem, small_variants, with_changing_weights
from tools.records import Evaluation, Packing, Problem, Sample, Tier, Verdict

SHEET = load_sheet("h200")
REFERENCE = sealable.MATMUL_REFERENCE


@pytest.fixture(scope="session")
def product(tmp_path_factory: pytest.TempPathFactory) -> Problem:
    """A product with a square weight."""
    file = tmp_path_factory.mktemp("product") / "product.py"
    file.write_text(REFERENCE)
    return load_problem(file)


@pytest.fixture
def judge(pool: LocalPool, product: Problem) -> Callable[[str], Evaluation]:
    """Evaluate a candidate in the interpreter."""

    def run(source: str) -> Evaluation:
        request = EvaluationRequest(
            problem=product, variants=small_variants(product), candidate="c", source=source, target=SHEET, timeout_s=120, stage="search"
        )
        return asyncio.run(pool.evaluate(request))

    return run


def followed(pool: LocalPool, problem: Problem, source: str) -> BuildAnswer:
    """Have the builder follow a source."""
    pool._workers.start()
    job = BuilderJob(abi=problem.abi, source=source, sheet=SHEET)
    done = pool._workers.ask("builder", job.model_dump_json().encode(), {}, time.monotonic() + 120, -1, sandboxed=True)
    return BuildAnswer.model_validate_json(done.answer)


def test_the_step_is_done_before_any_call(judge: Callable[[str], Evaluation]) -> None:
    """A candidate whose forward reads what only the step has written passes, and its packing is estimated apart from its time."""
    found = judge(sealable.PACKED)
    assert found.verdict is Verdict.PASS, (found.notes, found.log)
    assert found.estimate is not None
    assert found.packing_us
    assert [launch.name for launch in found.launches] == ["matmul_kernel"]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("        n = self.weight.shape[0]", "        raise ValueError('no room')"), "no room"),
        (("    def pack_weights(self):", "    pack_weights = 3\n\n    def other(self):"), "pack_weights of ModelNew is no method"),
    ],
    ids=["it raises", "it is no method"],
)
def test_a_step_that_fails_ends_the_candidate(judge: Callable[[str], Evaluation], change: tuple[str, str], reason: str) -> None:
    """What the step raises is the candidate's failure, told before any call."""
    found = judge(sealable.PACKED.replace(*change))
    assert found.verdict is Verdict.CRASHED
    assert any(reason in note for note in found.notes), found.notes


def test_a_plan_holds_packing_apart(pool: LocalPool, product: Problem) -> None:
    """What the step launches and makes stands in a place of its own: calls read it, and make their own memory."""
    found = followed(pool, product, sealable.PACKED)
    assert found.plan is not None, found.unsealable
    assert [buffer.role for buffer in found.plan.buffers] == ["input", "parameter", "packed", "made"]
    assert [step.function for step in found.plan.packing if isinstance(step, KernelLaunch)] == ["turn_kernel"]
    assert [launch.name for launch in found.packing] == ["turn_kernel"]
    assert [step.function for step in found.plan.steps if isinstance(step, KernelLaunch)] == ["matmul_kernel"]
    assert found.plan.packed_nbytes == 2048 * 2048 * 4
    assert fault(found.plan, product.abi, SHEET) == ""


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_packing_by_the_library_is_done_without_host_code(pool: LocalPool, product: Problem, tmp_path: Path) -> None:
    """A step's operators of torch are in the plan, and a process without its code makes the same bits of them."""
    found = followed(pool, product, sealable.PACKED_BY_THE_LIBRARY)
    plan = found.plan
    assert plan is not None, found.unsealable
    assert fault(plan, product.abi, SHEET) == ""
    (read,) = {view.buffer for step in plan.packing if isinstance(step, LibraryCall) for view in step.results if view is not None} & {
        argument.buffer for step in plan.steps if isinstance(step, KernelLaunch) for argument in step.arguments
    }
    weight = torch.randn(2048, 2048)
    again = LaunchPlan.model_validate_json(plan.model_dump_json()).model_copy(update={"steps": ()})
    library = str(compile_library(tmp_path))
    ctypes.c_int.in_dll(ctypes.CDLL(library), "works").value = 1
    model = SealedModel(again, product.abi, [weight], "cpu", Driver(library))
    model.poison(0xFF)
    assert torch.equal(inside(model, read).view(torch.float32).view(2048, 2048), weight.t())


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("self.turned = torch.special.bessel_j0(self.weight.t())", "its host code calls the library's aten.special_bessel_j0.default"),
        ("self.turned = self.weight.t().contiguous().mul_(2)", "its host code calls the library's aten.mul_.Tensor"),
        ("self.turned = torch.rand_like(self.weight)", "draws random numbers"),
        ("self.weight.copy_(self.weight.t()); self.turned = self.weight", "its host code writes to a parameter"),
        ("self.turned = self.weight.t() * torch.tensor(2.0)", "no input, no parameter, and not made in the same call"),
    ],
    ids=["another operator", "in place", "random", "into a parameter", "from elsewhere"],
)
def test_packing_by_other_means_has_no_plan(pool: LocalPool, product: Problem, line: str, reason: str) -> None:
    """A step that computes by what a plan cannot hold cannot be done without its host code, and the reason names the step."""
    found = followed(pool, product, sealable.PACKED.replace("        self.turned = torch.empty_like(self.weight)", f"        {line}"))
    assert found.plan is None
    assert found.unsealable.startswith("while it packs its weights")
    assert reason in found.unsealable


def test_a_power_of_two_above_the_weights_is_followed(pool: LocalPool, product: Problem) -> None:
    """The largest weight's exponent, made a float by its bits, as packed norms have it, is in the plan."""
    power = "(torch.frexp(self.weight.abs().max()).exponent + 127 << 23).to(torch.int32).view(torch.float32)"
    line = f"        self.turned = torch.empty_like(self.weight)\n        self.power = {power}"
    found = followed(pool, product, sealable.PACKED.replace("        self.turned = torch.empty_like(self.weight)", line))
    assert found.plan is not None, found.unsealable


def test_a_plans_operators_write_nothing_of_what_they_are_given() -> None:
    """Each makes tensors that are no views of its arguments, writes to none of them, and draws no random numbers."""
    for name in OPERATORS:
        _, packet, overload = name.split(".")
        operator = getattr(getattr(torch.ops.aten, packet), overload)
        assert not operator._schema.is_mutable, name
        assert all(result.alias_info is None for result in operator._schema.returns), name
        assert torch.Tag.nondeterministic_seeded not in operator.tags, name
        assert torch.Tag.data_dependent_output not in operator.tags, name


def test_operators_that_write_say_so_to_torch() -> None:
    """Each changes its first argument, or what is named `out`, and nothing else that it is given."""
    for name in WRITING:
        _, packet, overload = name.split(".")
        schema = getattr(getattr(torch.ops.aten, packet), overload)._schema
        written = [argument.name for argument in schema.arguments if argument.alias_info and argument.alias_info.is_write]
        assert written == (["out"] if overload.endswith("out") else [schema.arguments[0].name]), name


def test_weights_that_change_are_packed_in_every_call(pool: LocalPool, product: Problem) -> None:
    """Where the problem's weights change from call to call the step is part of each: its launches are the call's."""
    found = followed(pool, with_changing_weights(product), sealable.PACKED)
    assert [launch.name for launch in found.launches] == ["turn_kernel", "matmul_kernel"]
    assert found.packing == ()
    assert found.plan is not None
    assert [buffer.role for buffer in found.plan.buffers] == ["input", "parameter", "made", "made"]


def test_forged_packing_is_refused(pool: LocalPool, product: Problem) -> None:
    """A call that fills packed memory, an output in it, and a step that is given an input are no plan."""
    plan = followed(pool, product, sealable.PACKED).plan
    assert plan is not None
    fill = Fill(buffer=2, offset=0, nbytes=16, width=1, pattern=0)
    (launch,), (place,) = plan.packing, plan.outputs
    weight = View(buffer=1, offset=0, dtype="float32", shape=(4, 4), strides=(4, 1))
    call = LibraryCall(operator="copy", arguments=(weight,), results=(weight.model_copy(update={"buffer": 2}),))

    def other(**change: object) -> dict[str, object]:
        return {"packing": (call.model_copy(update=change),)}

    assert fault(plan.model_copy(update={"packing": (call,)}), product.abi, SHEET) == ""
    assert isinstance(launch, KernelLaunch)
    early = launch.model_copy(update={"arguments": (launch.arguments[0].model_copy(update={"buffer": 0}), *launch.arguments[1:])})
    for change, reason in (
        ({"steps": (fill, *plan.steps)}, "fills what it has not made"),
        ({"outputs": (place.model_copy(update={"buffer": 2}),)}, "not in memory that the call made"),
        ({"packing": (early,)}, "given what only a call has"),
        ({"packing": (launch,) * 101}, "packs its weights in 101 launches"),
        ({"packing": (fill.model_copy(update={"buffer": 3}),)}, "fills what it has not made"),
        (other(operator="aten.from_file.default"), "packs weights by the library's aten.from_file.default"),
        (other(arguments=(weight.model_copy(update={"buffer": 0}),)), "given what only a call has"),
        (other(results=(weight,)), "makes what is not packed"),
        (other(arguments=(weight.model_copy(update={"offset": 2048 * 2048 * 4 - 60}),)), "outside of its buffer"),
        (other(arguments=(weight.model_copy(update={"strides": (-1, 1)}),)), "outside of its buffer"),
        (other(arguments=(weight.model_copy(update={"dtype": "complex128"}),)), "outside of its buffer"),
        (other(operator="aten.sum.default", named=(("dtype", Word(word="os")),)), "is given os"),
        (other(arguments=(weight, weight)), "copies something other than one tensor"),
    ):
        forged = LaunchPlan.model_validate({**dict(plan), **change})
        assert reason in fault(forged, product.abi, SHEET)


def test_a_module_without_the_step_has_none() -> None:
    """Nothing is asked of a module that does not declare it; what is there must be a method."""
    module = torch.nn.Module()
    assert packing_step(module) is None
    module.pack_weights = 3  # type: ignore[assignment]
    with pytest.raises(InterfaceError, match="is no method"):
        packing_step(module)
    assert declares_packing(sealable.PACKED)
    assert not declares_packing(sealable.MATMUL)


def test_calls_pay_for_packing() -> None:
    """Packing of 1 ms is paid for by 21 calls that take 50 µs less each than eager does; a slower kernel never pays for it."""
    packing = Packing(time=Sample(median_us=1010.0, low_us=1000.0, high_us=1020.0, count=5), tier=Tier.IN_PROCESS)
    for kernel_us, calls in ((50.0, 21), (120.0, None)):
        found = passed(timing(kernel_us, eager_us=100.0, compile_us=200.0).model_copy(update={"packing": packing}))
        assert found.packing_pays_after() == calls
        assert found.packing_us == 1010.0
    assert passed(timing(50.0)).packing_us is None
