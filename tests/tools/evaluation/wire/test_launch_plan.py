"""Launch plans: what the builder records without a GPU, what makes a candidate unsealable, what no launcher would act on."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.tools.evaluation import sealable
from tests.tools.evaluation.parameters import kernel_parameters
from tools.evaluation import LocalPool
from tools.evaluation.supervisor.timed.sealed_session import _agreed, compare
from tools.evaluation.untrusted.plan.fill_patterns import Unsealable, pattern
from tools.evaluation.wire.jobs.builder import BuildAnswer, BuilderJob
from tools.evaluation.wire.launch_plan import BASES, Argument, Choice, Fill, KernelLaunch, LaunchPlan, layout, pack
from tools.evaluation.wire.plan_faults import MAX_STEPS, fault
from tools.evaluation.wire.tensor_maps import TensorMap
from tools.hardware import load_sheet
from tools.problems import load_problem
from tools.records import ABI, Sample, Seeds, Tier, Timing, Verdict

SHEET = load_sheet("h200")


@pytest.fixture(scope="session")
def abi_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], ABI]:
    """Read the ABI of a reference."""
    known: dict[str, ABI] = {}

    def read(reference: str) -> ABI:
        if reference not in known:
            file = tmp_path_factory.mktemp("reference") / "reference.py"
            file.write_text(reference)
            known[reference] = load_problem(file).abi
        return known[reference]

    return read


@pytest.fixture
def build(pool: LocalPool, abi_of: Callable[[str], ABI]) -> Callable[..., BuildAnswer]:
    """Have the builder follow a source, in its sandbox."""

    def run(source: str, reference: str = sealable.SUM_REFERENCE, *, launchers: bool = False) -> BuildAnswer:
        pool._workers.start()
        job = BuilderJob(abi=abi_of(reference), source=source, sheet=SHEET, launchers=launchers)
        done = pool._workers.ask("builder", job.model_dump_json().encode(), {}, time.monotonic() + 120, -1, sandboxed=True)
        return BuildAnswer.model_validate_json(done.answer)

    return run


def launches(plan: LaunchPlan) -> list[KernelLaunch]:
    """The kernels of a plan."""
    return [step for step in plan.steps if isinstance(step, KernelLaunch)]


CASES = {
    "softmax": (sealable.SOFTMAX, sealable.SOFTMAX_REFERENCE),
    "matmul": (sealable.MATMUL, sealable.MATMUL_REFERENCE),
    "tiles": (sealable.TILES, sealable.MATMUL_REFERENCE),
    "sum": (sealable.sum_with(""), sealable.SUM_REFERENCE),
}


@pytest.mark.parametrize("name", CASES)
def test_honest_kernels_have_plans(build: Callable[..., BuildAnswer], abi_of: Callable[[str], ABI], name: str) -> None:
    """A plan is made, nothing speaks against it, and the kernel's own machine code takes its parameters at the plan's places."""
    source, reference = CASES[name]
    found = build(source, reference)

    assert found.plan is not None, (found.unsealable, found.reason, found.notes)
    assert fault(found.plan, abi_of(reference), SHEET) == ""
    for launch in launches(found.plan):
        assert kernel_parameters(found.plan.code(launch.cubin), launch.function) in [layout(launch.arguments, base) for base in BASES]


def test_a_plan_says_what_is_launched(build: Callable[..., BuildAnswer]) -> None:
    """Grid, threads, shared memory above 48 KiB, buffers and scalars are those of the call; parameters are buffers of their own."""
    plan = build(sealable.MATMUL, sealable.MATMUL_REFERENCE).plan
    assert plan is not None
    (launch,) = launches(plan)

    assert launch.grid == (16, 16, 1)
    assert launch.threads == 256
    assert launch.shared_bytes > 48 << 10
    assert [buffer.role for buffer in plan.buffers] == ["input", "parameter", "made"]
    assert [argument.buffer for argument in launch.arguments[:3] if isinstance(argument, Argument)] == [0, 1, 2]
    assert [argument.value for argument in launch.arguments[3:6] if isinstance(argument, Argument)] == [2048, 2048, 2048]
    assert plan.outputs[0].strides == (2048, 1)


def test_a_tensor_descriptor_is_a_map_with_sizes_and_strides(build: Callable[..., BuildAnswer], abi_of: Callable[[str], ABI]) -> None:
    """What Triton's host code tells the driver of each tensor is in the plan, and what it cannot be is refused."""
    plan = build(sealable.TILES, sealable.MATMUL_REFERENCE).plan
    assert plan is not None
    (launch,) = launches(plan)
    maps = [argument for argument in launch.arguments if isinstance(argument, TensorMap)]

    assert [(one.buffer, one.offset, one.shape, one.strides) for one in maps] == [(place, 0, (2048, 2048), (2048, 1)) for place in range(3)]
    assert {(one.dtype, one.item, one.nan) for one in maps} == {(7, 4, False)}
    assert [one.box[0] for one in maps[:2]] == [128, 32]
    assert [argument.value for argument in launch.arguments[1:5] if isinstance(argument, Argument)] == [2048, 2048, 2048, 1]
    for change, reason in (
        ({"shape": (4096, 2048)}, "reaches outside of its buffer"),
        ({"offset": 8}, "no device copies"),
        ({"strides": (2047, 1)}, "no device copies"),
        ({"box": (512, 32)}, "unknown kind"),
        ({"shape": (2048,)}, "dimensions do not fit"),
        ({"buffer": 9}, "outside of its buffers"),
    ):
        wild = launch.model_copy(update={"arguments": (maps[0].model_copy(update=change), *launch.arguments[1:])})
        assert reason in fault(forged(plan, steps=(wild,)), abi_of(sealable.MATMUL_REFERENCE), SHEET)


def test_zeroed_memory_is_a_fill_before_its_launch(build: Callable[..., BuildAnswer]) -> None:
    """torch.zeros is a buffer and a constant written over all of it, every time."""
    plan = build(sealable.sum_with("")).plan
    assert plan is not None
    fill, launch = plan.steps

    assert isinstance(fill, Fill)
    assert (fill.nbytes, fill.width, fill.pattern) == (256, 1, 0)
    assert isinstance(launch, KernelLaunch)
    assert launch.arguments[1].buffer == fill.buffer == plan.outputs[0].buffer


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("x = torch.special.bessel_j0(x)", "aten.special_bessel_j0"),
        ("x = torch.nn.functional.dropout(x)", "draws random numbers (aten."),
        ("x = x + torch.rand_like(x)", "draws random numbers"),
        ("x.add_(1)", "writes to an input"),
        (
            "self.kept = getattr(self, 'kept', None) if hasattr(self, 'kept') else torch.zeros_like(out)\nout = self.kept",
            "made in the same call",
        ),
        ("self.calls = getattr(self, 'calls', 0) + 1\ncolumns -= self.calls", "differs from its second"),
        ("x.zero_()", "fills an input"),
        ("out = torch.zeros((rows, 2), device=x.device)[:, 0]\nout.fill_(1.0)", "with gaps"),
        ("out = torch.full((rows,), 1.5, device=x.device, dtype=torch.float64)", "no memory set can"),
    ],
)
def test_host_code_that_does_more_is_refused(build: Callable[..., BuildAnswer], lines: str, reason: str) -> None:
    """Whatever else host code does leaves no plan, and the reason names it."""
    found = build(sealable.sum_with(lines))

    assert found.status == "built", found.reason
    assert found.plan is None
    assert reason in found.unsealable


def test_side_streams_are_one_stream_in_a_plan(build: Callable[..., BuildAnswer]) -> None:
    """The same launches in the same order, and the plan says that they may have run side by side."""
    plain = build(sealable.sum_with("")).plan
    aside = build(sealable.sum_with("torch.cuda.stream(torch.cuda.Stream()).__enter__()")).plan
    assert plain is not None
    assert not plain.several_streams
    assert aside == plain.model_copy(update={"several_streams": True})


def test_patched_clocks_leave_no_trace(build: Callable[..., BuildAnswer]) -> None:
    """What hides work from a clock in the candidate's process changes nothing of the plan."""
    hidden = "torch.cuda.Event.elapsed_time = lambda *_: 1e-6\ntorch.cuda.set_stream = lambda _: None"
    assert build(sealable.sum_with(hidden)).plan == build(sealable.sum_with("")).plan


def test_an_autotuned_kernel_is_refused(build: Callable[..., BuildAnswer]) -> None:
    """What a device decides cannot be recorded without one."""
    tuned = (
        sealable.sum_with("")
        .replace(", BLOCK=8192)", ")")
        .replace(
            "@triton.jit",
            '@triton.autotune([triton.Config({"BLOCK": 8192}), triton.Config({"BLOCK": 4096})], key=["columns"])\n@triton.jit',
        )
    )
    found = build(tuned)
    assert found.plan is None
    assert "decided on the device" in found.unsealable


def test_an_autotuned_kernel_is_recorded_in_all_configurations_where_it_will_run(
    build: Callable[..., BuildAnswer], abi_of: Callable[[str], ABI]
) -> None:
    """Where there is a device the plan has a launch for each, with the heuristic's constant in its code; the build describes one."""
    found = build(sealable.TUNED, sealable.SOFTMAX_REFERENCE, launchers=True)
    assert found.plan is not None, found.unsealable
    (choice,) = found.plan.steps
    assert isinstance(choice, Choice)
    assert [launch.threads for way in choice.ways for launch in way if isinstance(launch, KernelLaunch)] == [64, 256, 512]
    assert found.plan.tuned
    assert len(found.plan.cubins) == 3
    assert [launch.num_warps for launch in found.launches] == [2]
    abi = abi_of(sealable.SOFTMAX_REFERENCE)
    assert fault(found.plan, abi, SHEET) == ""
    assert "among 0 ways" in fault(forged(found.plan, steps=(Choice(ways=()),)), abi, SHEET)
    assert "that launch nothing" in fault(forged(found.plan, steps=(Choice(ways=((),)),)), abi, SHEET)


def test_a_graph_of_kernels_is_replayed_in_the_plan(build: Callable[..., BuildAnswer], abi_of: Callable[[str], ABI]) -> None:
    """A candidate that captures its kernel has copies around it in its plan, and the kernel is said to be a graph."""
    found = build(sealable.GRAPHED, sealable.SOFTMAX_REFERENCE)
    assert found.plan is not None, found.unsealable
    assert [step.kind for step in found.plan.steps] == ["library", "kernel", "library"]
    assert found.plan.captured == found.plan.graphs == ((1, 2),)
    assert [(launch.kind, launch.replayed) for launch in found.launches] == [("library", 0), ("triton", 1), ("library", 0)]
    assert fault(found.plan, abi_of(sealable.SOFTMAX_REFERENCE), SHEET) == ""


def test_a_constructor_may_read_its_own_tensors(build: Callable[..., BuildAnswer]) -> None:
    """Rates that a constructor computes on the host are no values from the device: the plan is the same."""
    rates = "class ModelNew(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    rates += "        self.rates = [rate.item() for rate in torch.linspace(0, 1, 3)]\n"
    reads = sealable.sum_with("columns = int(columns * max(self.rates))").replace("class ModelNew(torch.nn.Module):\n", rates)
    assert build(reads).plan == build(sealable.sum_with("columns = columns")).plan is not None
    found = build(sealable.sum_with("columns = int(columns * (x[0, 0] * 0 + 1).item())"))
    assert found.plan is None
    assert found.unsealable.startswith("its host code reads values from the device (.item()")


def test_many_short_launches_are_replayed_as_one_graph(build: Callable[..., BuildAnswer]) -> None:
    """Two hundred launches take the host longer than its head start; a few do not."""
    few = build(sealable.sum_with("")).plan
    assert few is not None
    assert not few.crowded
    many = forged(few, steps=few.steps * 100)
    assert many.captured == ((0, 200),)


def forged(plan: LaunchPlan, **changes: Any) -> LaunchPlan:
    """A plan with other fields."""
    return plan.model_copy(update=changes)


def test_forged_plans_are_refused(build: Callable[..., BuildAnswer], abi_of: Callable[[str], ABI]) -> None:
    """A pointer, a fill or an output outside of its buffer, another size, no code, a huge grid: each has its reason."""
    abi = abi_of(sealable.SUM_REFERENCE)
    plan = build(sealable.sum_with("")).plan
    assert plan is not None
    fill, launch = plan.steps
    wild = launch.model_copy(update={"arguments": (Argument(type="pointer", buffer=7),)})
    past = launch.model_copy(update={"arguments": (Argument(type="pointer", buffer=0, offset=1 << 60),)})
    number = launch.model_copy(update={"arguments": (Argument(type="i32", value=1 << 40),)})
    cases = {
        "a pointer outside": [forged(plan, steps=(wild,)), forged(plan, steps=(past,))],
        "is given 1099511627776 as i32": [forged(plan, steps=(number,))],
        "outside of its buffer": [
            forged(plan, steps=(fill.model_copy(update={"nbytes": 512}), launch)),
            forged(plan, outputs=(plan.outputs[0].model_copy(update={"offset": 4}),)),
        ],
        "not in memory that the call made": [forged(plan, outputs=(plan.outputs[0].model_copy(update={"buffer": 0}),))],
        "is not the ABI's": [forged(plan, buffers=(plan.buffers[0].model_copy(update={"nbytes": 4}), plan.buffers[1]))],
        "no machine code": [forged(plan, cubins=("AAAA",)), forged(plan, steps=(launch.model_copy(update={"cubin": 3}),))],
        "a grid of": [forged(plan, steps=(launch.model_copy(update={"grid": (1, 1 << 20, 1)}),))],
        "launches no kernel": [forged(plan, steps=(fill,))],
        "cannot be issued ahead": [forged(plan, steps=(launch,) * (MAX_STEPS + 1))],
        "0 outputs": [forged(plan, outputs=())],
    }
    for reason, plans in cases.items():
        assert [reason in fault(one, abi, SHEET) for one in plans] == [True] * len(plans), reason


def test_arguments_are_packed_as_c_would() -> None:
    """Each is aligned to its own size; pointers are addresses with their offsets, or null."""
    arguments = (
        Argument(type="i8", value=-1),
        Argument(type="pointer", buffer=1, offset=16),
        Argument(type="i32", value=-5),
        Argument(type="fp64", value=0.5),
        Argument(type="fp32", value=0.25),
        Argument(type="pointer"),
    )
    assert layout(arguments) == [(0, 1), (8, 8), (16, 4), (24, 8), (32, 4), (40, 8)]
    tensor = TensorMap(buffer=0, offset=0, dtype=7, item=4, shape=(4,), strides=(1,), box=(4,), swizzle=0)
    assert layout((arguments[1], tensor, arguments[0]), 0) == [(0, 8), (64, 128), (192, 1)]
    assert layout((arguments[1], tensor, arguments[0]), 16) == [(0, 8), (48, 128), (176, 1)]
    assert pack(arguments[1], (0x1000, 0x2000)) == struct.pack("<Q", 0x2010)
    assert pack(arguments[2], ()) == struct.pack("<i", -5)
    assert pack(arguments[4], ()) == struct.pack("<f", 0.25)
    assert pack(arguments[5], ()) == bytes(8)


@pytest.mark.parametrize(
    ("value", "dtype", "item", "expected"),
    [
        (0, "float64", 8, (1, 0)),
        (1.0, "float32", 4, (4, 0x3F800000)),
        (1.0, "bfloat16", 2, (2, 0x3F80)),
        (-1, "int64", 8, (1, 0xFF)),
        (True, "bool", 1, (1, 1)),
        (float("-inf"), "float16", 2, (2, 0xFC00)),
    ],
)
def test_constants_become_patterns(value: float, dtype: str, item: int, expected: tuple[int, int]) -> None:
    """The pattern's bytes are those of the value in its dtype."""
    assert pattern(value, dtype, item) == expected


def test_a_constant_that_no_memory_set_writes_is_refused() -> None:
    """Eight bytes that do not repeat have no pattern."""
    with pytest.raises(Unsealable, match="no memory set"):
        pattern(1.5, "float64", 8)


def test_two_medians_must_agree() -> None:
    """15 % or 5 µs apart is one kernel; more is two stories, and which is faster matters."""
    assert compare(100.0, 114.0) == compare(4.0, 8.5) == "agree"
    assert compare(100.0, 50.0) == "own is faster"
    assert compare(100.0, 120.0) == "own is slower"


def test_plans_survive_their_json_form(build: Callable[..., BuildAnswer]) -> None:
    """A plan crosses borders as JSON and comes back equal."""
    plan = build(sealable.SOFTMAX, sealable.SOFTMAX_REFERENCE).plan
    assert plan is not None
    assert LaunchPlan.model_validate_json(plan.model_dump_json()) == plan


def timing(tier: Tier, us: float, chained_us: float = 0.0) -> Timing:
    """A measured time beside an eager one of 100 µs, and what a call takes in a chain."""
    given = {"own": us, "eager": 100.0, "chained": chained_us or us}
    samples = {name: Sample(median_us=value, low_us=value, high_us=value, count=40) for name, value in given.items()}
    return Timing(
        tier=tier,
        candidate=samples["own"],
        bracket=samples["chained"] if chained_us else None,
        baselines={"eager": samples["eager"]},
        speedups={"eager": (100 / us,) * 3},
        device="X",
    )


@dataclass
class Case:
    """What is known of a candidate with a plan."""

    build: BuildAnswer
    notes: list[str] = field(default_factory=list)
    seeds: list[Seeds] = field(default_factory=list)


@pytest.mark.parametrize(
    ("own_us", "chained_us", "streams", "published", "word"),
    [
        (52.0, 0.0, False, Tier.SEALED, "Sealed: "),
        (90.0, 0.0, False, Tier.IN_PROCESS, "Not sealed: "),
        (90.0, 88.0, False, Tier.IN_PROCESS, "Not sealed: "),
        (90.0, 51.0, False, Tier.SEALED, "its host was late"),
        (20.0, 0.0, True, Tier.SEALED, "one after the other"),
        (20.0, 0.0, False, None, "Sealed: "),
    ],
)
def test_the_slower_of_two_timings_is_published(own_us: float, chained_us: float, streams: bool, published: Tier | None, word: str) -> None:
    """Sealed 50 µs: alike is sealed; a slower process keeps its own, unless its calls in chains are alike; nobody believes a faster one."""
    plan = LaunchPlan(buffers=(), steps=(), outputs=(), cubins=(), several_streams=streams)
    case = Case(BuildAnswer(status="built", plan=plan))
    found = _agreed(case, timing(Tier.SEALED, 50.0), timing(Tier.IN_PROCESS, own_us, chained_us))

    if isinstance(found, Timing):
        assert found.tier is published
        assert word in case.notes[0]
    else:
        assert published is None
        assert found.verdict is Verdict.TIMING_INCONSISTENT
        assert word in found.notes[0]
