"""Plans of host code that calls torch between kernels: what is recorded without contents does the same, bit for bit, without its code."""

from __future__ import annotations

import ctypes
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch.nn import functional

from tests.tools.evaluation.driver_library import compile_library
from tools.evaluation.untrusted import composites, fake_device, graph_stand_in
from tools.evaluation.untrusted.launch_recorder import Recorder
from tools.evaluation.untrusted.sealed import SealedModel
from tools.evaluation.wire.driver_api import Driver
from tools.evaluation.wire.launch_plan import LaunchPlan
from tools.evaluation.wire.library_calls import LibraryCall
from tools.evaluation.wire.plan_faults import fault
from tools.hardware import load_sheet
from tools.records import ABI, TensorSpec

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
SHEET = load_sheet("h200")
Forward = Callable[..., Any]
CL = torch.channels_last
GRAPH_NAMES = ("CUDAGraph", "graph", "graph_pool_handle", "is_current_stream_capturing")


def like(tensor: torch.Tensor) -> torch.Tensor:
    """The same without contents, on the device of tensors without contents."""
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=fake_device.fake_name())


def specs(prefix: str, tensors: Sequence[torch.Tensor]) -> tuple[TensorSpec, ...]:
    """How an ABI says what tensors are."""
    return tuple(
        TensorSpec(name=f"{prefix}{place}", shape=tuple(one.shape), dtype=str(one.dtype).removeprefix("torch."))
        for place, one in enumerate(tensors)
    )


@contextmanager
def stand_ins(recorder: Recorder) -> Iterator[None]:
    """Torch's graphs, attention and recurrent layers tell the recorder what they do."""
    before = [(torch.cuda, name, getattr(torch.cuda, name)) for name in GRAPH_NAMES]
    aten = torch.ops.aten
    owners = [(functional, "scaled_dot_product_attention"), (aten.scaled_dot_product_attention, "default")]
    owners += [(aten.lstm, "input"), (aten.gru, "input")]
    owners += [(module, name) for module in (torch, torch._VF) for name in ("lstm", "gru")]
    before += [(module, name, getattr(module, name)) for module, name in owners]
    graph_stand_in.install(recorder.planner)
    composites.install(recorder)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


def follow(forward: Forward, inputs: Sequence[torch.Tensor], weights: Sequence[torch.Tensor], calls: int = 1) -> tuple[Any, str]:
    """Follow a forward without contents, as often as asked; the plan of the last call, or why there is none."""
    recorder, plan = Recorder(SHEET), None
    with torch.no_grad(), fake_device.fake_device(), fake_device.on_device(fake_device.fake_name()), stand_ins(recorder):
        given, held = [like(one) for one in inputs], [like(one) for one in weights]
        with recorder.library_mode():
            recorder.planner.begin(given, held)
            for _ in range(calls):
                recorder.planner.begin_call()
                made = forward(*given, *held)
                plan = recorder.planner.finish(made if isinstance(made, list) else [made])
    return plan, recorder.planner.reason


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A library in the driver's place."""
    made = compile_library(tmp_path_factory.mktemp("driver"))
    ctypes.c_int.in_dll(ctypes.CDLL(str(made)), "works").value = 1
    return str(made)


def written_out(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """A product into memory that is there, and a part of it that is doubled in place."""
    out = torch.empty(x.shape[0], w.shape[1], device=x.device)
    torch.mm(x, w, out=out)
    out[:, 1:3].mul_(2.0)
    return out


def counted(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Running statistics that a call brings up to date."""
    torch._foreach_mul_([w[0]], 0.9)
    w[1].copy_(x.mean(0))
    return x - w[1]


X, W, V = (6, 4), (4, 5), (5,)
IMAGE, KERNEL = (2, 4, 9, 9), (8, 4, 3, 3)
CASES: dict[str, tuple[Forward, tuple[int, ...], tuple[tuple[int, ...], ...]]] = {
    "product": (lambda x, w: x @ w, X, (W,)),
    "addmm of a view": (lambda x, w, b: functional.linear(x, w.t(), b), X, (W, V)),
    "bmm and baddbmm": (lambda x, w: torch.baddbmm(x, x, w) + torch.bmm(x, w), (3, 4, 4), ((3, 4, 4),)),
    "product in place": (written_out, X, (W,)),
    "convolution": (lambda x, w: functional.conv2d(x, w, stride=2, padding=1), IMAGE, (KERNEL,)),
    "channels last": (
        lambda x, w: functional.conv2d(x.contiguous(memory_format=CL), w.contiguous(memory_format=CL)).relu_(),
        IMAGE,
        (KERNEL,),
    ),
    "transposed": (lambda x, w: functional.conv_transpose2d(x, w, stride=2, output_padding=1), (2, 8, 5, 5), (KERNEL,)),
    "one and three dimensions": (
        lambda x, w: functional.conv3d(x[None, :1], w[None]).sum() + functional.conv1d(x[0, :, :2], w[0]).sum(),
        (2, 3, 3, 3),
        ((1, 2, 2, 2),),
    ),
    "pooling": (lambda x: [functional.max_pool2d(x, 2), functional.avg_pool2d(x, 3), functional.adaptive_avg_pool2d(x, (2, 2))], IMAGE, ()),
    "scans": (lambda x: [torch.cumsum(x, 1), torch.cumprod(x, 0), torch.cummax(x, 1)[0]], X, ()),
    "sorting": (lambda x: [*torch.sort(x, 1), *torch.topk(x, 2)], X, ()),
    "reductions": (lambda x: [x.sum(1), x.mean(), x.amax(0), x.var(1), x.norm(dim=1), x.argmax(1), torch.logsumexp(x, 1)], X, ()),
    "elementwise": (lambda x, w: torch.where(x > 0, functional.gelu(x @ w, approximate="tanh").sum(), x.clamp(min=-1.0).exp()), X, (W,)),
    "an infinite constant": (lambda x: x.masked_fill(x > 0, float("-inf")), X, ()),
    "views and slices": (lambda x: (x[1:, ::2].t() + 1).reshape(-1)[3:], X, ()),
    "layout and dtype": (lambda x: x.t().contiguous().half().float().view(2, -1), X, ()),
    "eight bits": (lambda x: [kind.float() for kind in (x.to(torch.float8_e4m3fn), x.to(torch.float8_e5m2))], X, ()),
    "norms": (
        lambda x, w: [functional.layer_norm(x, (4,)), functional.group_norm(x, 2), functional.batch_norm(x, w[0], w[1].abs())],
        X,
        ((2, 4),),
    ),
    "made on the device": (lambda x: x + torch.arange(4, device=x.device) * torch.ones(6, 1, device=x.device).tril(), X, ()),
    "pieces": (lambda x: torch.cat([torch.stack([x, x]).flatten(0, 1), functional.pad(x, (0, 0, 1, 1))]), X, ()),
    "padding and resizing": (
        lambda x: functional.interpolate(functional.pad(x, (1, 1, 1, 1), mode="reflect"), scale_factor=2.0, mode="bilinear"),
        IMAGE,
        (),
    ),
    "rows of a table": (lambda x, w: functional.embedding(x.argsort(1), w), X, ((4, 3),)),
    "running statistics": (counted, X, ((2, 4),)),
    "recurrent layers": (
        lambda x, w, v, b: [
            torch.lstm(x, (x[:, :1, :3] * 0,) * 2, [w, v, b, b], True, 1, 0.0, False, False, True)[0],
            torch.ops.aten.gru.input(x, x[:, :2, :3] * 0, [w[:9], v[:9], b[:9], b[:9]], True, 1, 0.0, False, False, False)[1],
        ],
        (1, 2, 4),
        ((12, 4), (12, 3), (12,)),
    ),
    "attention": (
        lambda x: functional.scaled_dot_product_attention(x, x, x, is_causal=True).transpose(1, 2).reshape(2, 16, 32),
        (2, 4, 16, 8),
        (),
    ),
}


@needs_gcc
@pytest.mark.parametrize("name", CASES)
def test_calls_of_the_library_are_done_without_host_code(library: str, name: str) -> None:
    """What a plan of torch's operators gives is what the host code gives, twice, after its way through JSON, with nothing left over."""
    forward, shape, shapes = CASES[name]
    x, weights = torch.randn(shape), [torch.randn(one) for one in shapes]
    plan, reason = follow(forward, [x], weights)
    assert plan is not None, reason
    expected = forward(x.clone(), *(one.clone() for one in weights))
    expected = expected if isinstance(expected, list) else [expected]
    abi = ABI(arguments=specs("x", [x]), parameters=specs("w", weights), outputs=specs("y", expected))
    assert fault(plan, abi, SHEET) == ""
    model = SealedModel(LaunchPlan.model_validate_json(plan.model_dump_json()), abi, weights, "cpu", Driver(library))
    model.inputs[0].copy_(x)
    for byte in (0x00, 0xFF):
        model.poison(byte)
        for found, wanted in zip(model(), expected, strict=True):
            assert torch.equal(found, wanted), name
    model.check_borders()


@pytest.mark.parametrize(
    ("forward", "reason"),
    [
        (lambda x, w: torch.special.bessel_j0(x), "its host code calls the library's aten.special_bessel_j0.default"),
        (lambda x, w: functional.dropout(x), "draws random numbers (aten.bernoulli_.float), which differ from call to call"),
        (lambda x, w: torch.bernoulli(x), "draws random numbers"),
        (
            lambda x, w: functional.scaled_dot_product_attention(x[None, None], x[None, None], x[None, None], dropout_p=0.5),
            "random numbers",
        ),
        (lambda x, w: x.relu_(), "writes to an input"),
        (lambda x, w: x + torch.tensor([1.0, 2.0, 3.0, 4.0]), "no input, no parameter, and not made in the same call"),
        (lambda x, w: torch.complex(x, x).abs(), "aten.complex.default"),
    ],
    ids=["another operator", "dropout", "bernoulli", "attention that drops", "into an input", "from elsewhere", "complex"],
)
def test_what_a_plan_cannot_hold_is_named(forward: Forward, reason: str) -> None:
    """An operator that is not on the list, a random number, a write to an input: no plan, and the reason names it."""
    plan, said = follow(forward, [torch.randn(X)], [torch.randn(W)])
    assert plan is None
    assert reason in said


def test_memory_is_let_go_where_host_code_lets_go_of_it() -> None:
    """What a loop drops torch may allot anew; what a local variable holds is held to the end; what nobody reads has no memory."""

    def dropped(x: torch.Tensor) -> torch.Tensor:
        for _ in range(3):
            x = x.sort(1)[0]
        return x

    def held(x: torch.Tensor) -> torch.Tensor:
        first = x.exp()
        second = first.exp()
        return second.exp()

    for forward, until in ((dropped, [2, -1, -1]), (held, [-1, -1, -1])):
        plan, _ = follow(forward, [torch.randn(X)], [])
        makers = plan.makers
        assert [plan.buffers[buffer].until for buffer in makers if plan.buffers[buffer].nbytes] == until
        assert all(plan.buffers[view.buffer].nbytes for step in plan.steps for view in step.makes)


class Graphed:
    """Captures a graph in its first call, of what it is given or of a copy; replays it in each."""

    def __init__(self, *, copies: bool) -> None:
        """Read a copy of the input, or the input where it lies."""
        self._copies = copies
        self._graph: Any = None

    def __call__(self, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        """Twice the product, by a graph."""
        if self._graph is None:
            self._given = x.clone() if self._copies else x
            (self._given @ w).sum()
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                self._made = (self._given @ w) * 2
        if self._copies:
            self._given.copy_(x)
        self._graph.replay()
        return self._made.clone()


@needs_gcc
@pytest.mark.parametrize("copies", [True, False])
def test_a_graph_is_a_part_of_the_plan_of_each_replay(library: str, copies: bool) -> None:
    """Later calls have what was captured between their copies, said to be a graph; and give what the host code would."""
    x, w = torch.randn(X), torch.randn(W)
    plan, reason = follow(Graphed(copies=copies), [x], [w], calls=3)
    assert plan is not None, reason
    assert [step.operator for step in plan.steps if isinstance(step, LibraryCall)] == [
        *(["copy"] if copies else []),
        "aten.mm.default",
        "aten.mul.Tensor",
        "copy",
    ]
    assert plan.graphs == ((int(copies), int(copies) + 2),)
    expected = x @ w * 2
    abi = ABI(arguments=specs("x", [x]), parameters=specs("w", [w]), outputs=specs("y", [expected]))
    assert fault(plan, abi, SHEET) == ""
    model = SealedModel(plan, abi, [w], "cpu", Driver(library))
    model.poison(0xFF)
    model.inputs[0].copy_(x)
    assert torch.equal(model()[0], expected)


def test_a_graph_of_what_a_plan_cannot_hold_is_none() -> None:
    """Random numbers inside of a graph are named at its replay; what its first call did beside it is no matter."""

    def forward(x: torch.Tensor) -> torch.Tensor:
        if not graphs:
            functional.dropout(x)
            graphs.append((torch.cuda.CUDAGraph(), []))
            with torch.cuda.graph(graphs[0][0]):
                graphs[0][1].append(functional.dropout(x) if drops else x * 2)
        graphs[0][0].replay()
        return graphs[0][1][0].clone()

    for drops in (True, False):
        graphs: list[Any] = []
        plan, reason = follow(forward, [torch.randn(X)], [], calls=2)
        assert (plan is None) is drops, reason
        assert ("draws random numbers" in reason) is drops


def test_forged_calls_of_the_library_are_refused() -> None:
    """An operator off the list, a result in an input, a graph out of range, a buffer made twice, and reading what is gone are no plan."""
    x, w = torch.randn(X), torch.randn(W)
    plan, _ = follow(lambda x, w: (x @ w).exp(), [x], [w])
    product, exponential = plan.steps
    abi = ABI(arguments=specs("x", [x]), parameters=specs("w", [w]), outputs=specs("y", [x @ w]))
    into = product.model_copy(update={"results": (product.results[0].model_copy(update={"buffer": 0}),)})
    gone = tuple(buffer.model_copy(update={"until": 1}) if place == 2 else buffer for place, buffer in enumerate(plan.buffers))
    for change, reason in (
        ({"steps": (product.model_copy(update={"operator": "aten.from_file.default"}), exponential)}, "calls the library's aten.from_file"),
        ({"steps": (into, exponential)}, "writes to what the call has not made"),
        ({"steps": (exponential, product)}, "reads what is not there yet"),
        ({"steps": (product, product, exponential)}, "makes one buffer twice"),
        ({"buffers": gone}, "or not any more"),
        ({"graphs": ((1, 3),)}, "its graphs are no parts of it"),
        ({"steps": ()}, "launches no kernel"),
    ):
        assert reason in fault(plan.model_copy(update=change), abi, SHEET), reason
