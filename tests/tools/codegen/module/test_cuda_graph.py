"""Forwards captured as CUDA graphs: offered where launches are many, left alone without CUDA, right where there is one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.tools.codegen.harness import problem_of, run_worker, trace_problem, traced, write_job
from tests.tools.codegen.interpreter_worker import load
from tests.tools.codegen.samples import function
from tools.codegen import IllegalAction, Region, Schedule, apply, emit, initial_schedule, options
from tools.codegen.ir.graph import Node, OperatorGraph, Ref, TensorMeta
from tools.codegen.schedule.cuda_graph import CAPTURE, WHOLE, launches
from tools.codegen.trace.python_state import keeps_state
from tools.hardware import load_sheet
from tools.records import Action, ActionKind

GRAPH = Action(kind=ActionKind.LAUNCH, region=WHOLE, parameters={CAPTURE: "graph"})
DEEP = """import torch
from torch import nn

BATCH = 3


class Model(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(*(part for _ in range(6) for part in (nn.Linear(width, width), nn.BatchNorm1d(width), nn.Tanh())))

    def forward(self, x):
        return self.layers(x)


def get_inputs():
    return [torch.randn(BATCH, 8)]


def get_init_inputs():
    return [8]
"""

RECURRENT = """import torch
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.{name}(4, 5, 3, batch_first={batch_first}, bidirectional=True)

    def forward(self, x):
        return self.cells(x)[0]


def get_inputs():
    return [torch.randn({shape})]


def get_init_inputs():
    return []
"""


def captured(source: str) -> tuple[Any, str]:
    """Trace a reference in training mode, capture it, and emit it."""
    problem = problem_of(source)
    problem = problem.model_copy(update={"abi": problem.abi.model_copy(update={"training": True})})
    graph = trace_problem(problem)
    return problem, emit(problem, graph, apply(graph, initial_schedule(graph), GRAPH)).source


def test_a_capture_is_offered_where_launches_are_many() -> None:
    """Sixteen launches and more make a capture an option, and it can be taken back."""
    graph = trace_problem(problem_of(DEEP))
    schedule = initial_schedule(graph)
    sheet = load_sheet("h200")
    assert GRAPH in options(graph, schedule, sheet)
    with_graph = apply(graph, schedule, GRAPH)
    back = next(action for action in options(graph, with_graph, sheet) if action.region == WHOLE)
    assert apply(graph, with_graph, back) == schedule
    assert Schedule.model_validate_json(with_graph.model_dump_json()).captured


def test_few_launches_are_not_captured() -> None:
    """A capture of a few kernels is refused with its reason."""
    _, graph = traced("softmax")
    with pytest.raises(IllegalAction, match="fewer than 16 launches"):
        apply(graph, initial_schedule(graph), GRAPH)


def test_a_forward_that_copies_numbers_is_not_captured() -> None:
    """Numbers that the library reads are copied from the host's memory, which no capture takes."""
    graph = trace_problem(
        problem_of(DEEP.replace("self.layers(x)", "self.layers(x) @ torch.tensor([0.5, 1, 2, 3, 4, 5, 6, 7], device=x.device)"))
    )
    assert GRAPH not in options(graph, initial_schedule(graph), load_sheet("h200"))


@pytest.mark.parametrize(
    "waits", ["torch.linalg.cholesky(y.mT @ y + 1)", "y + torch.histc(y, 8)", "y * torch.bincount(y[0].abs().int(), y[1].half(), 8)"]
)
def test_a_forward_whose_host_waits_is_not_captured(waits: str) -> None:
    """Operators of the library that look at what the device has made are launched one by one."""
    graph = trace_problem(problem_of(DEEP.replace("return self.layers(x)", f"y = self.layers(x)\n        return {waits}")))
    schedule = initial_schedule(graph)
    assert launches(graph, schedule) >= 16
    assert GRAPH not in options(graph, schedule, load_sheet("h200"))


def test_a_reference_kept_as_it_stands_whose_host_waits_is_not_captured() -> None:
    """What is not traced may wait as well."""
    body = "torch.stack([torch.tanh(row[: at + 1]).sum() + torch.linalg.inv(x[:2, :2]).sum() for at, row in enumerate(x)])"
    graph = trace_problem(problem_of(function(body)))
    assert graph.blocked
    assert options(graph, initial_schedule(graph), load_sheet("h200")) == ()


@pytest.mark.parametrize(
    ("numbers", "written"), [("[2.0]", "torch.full((1,), 2.0"), ("[[3, 3]]", "torch.full((1, 2), 3"), ("x.shape[1]", "torch.full((), ")]
)
def test_a_tensor_of_one_number_is_filled_and_captured(numbers: str, written: str) -> None:
    """What holds one number everywhere is filled on the device, which a capture takes."""
    _, source = captured(DEEP.replace("self.layers(x)", f"(self.layers(x), torch.tensor({numbers}, device=x.device).cumsum(-1))"))
    assert written in source


def test_a_forward_that_keeps_state_is_not_captured() -> None:
    """What forward assigns to its module would not be assigned by a replay."""
    graph = trace_problem(problem_of(DEEP.replace("return self.layers(x)", "self.last = self.layers(x)\n        return self.last")))
    assert GRAPH not in options(graph, initial_schedule(graph), load_sheet("h200"))


def test_what_only_the_constructor_assigns_is_no_state() -> None:
    """A method that builds layers may assign attributes, as ResNets do; one that forward reaches, however indirectly, may not."""
    building = DEEP.replace("self.layers = ", "self.build()\n        self.layers = ").replace(
        "    def forward", "    def build(self):\n        self.planes = 64\n\n    def forward"
    )
    assert not trace_problem(problem_of(building)).keeps_state
    assert trace_problem(problem_of(building.replace("return self.layers(x)", "self.build()\n        return self.layers(x)"))).keeps_state


@pytest.mark.parametrize("write", ["setattr(self, 'last', x)", "self.counts[0] += 1", "self.box.last = x", "del self.last"])
def test_other_ways_of_keeping_state_are_seen(write: str) -> None:
    """Attributes by computed names, items and attributes of attributes are state as well."""
    text = DEEP.replace("return self.layers(x)", f"{write}\n        return self.layers(x)")
    assert keeps_state(problem_of(DEEP).model_copy(update={"source": text}))


def test_a_registered_hook_may_keep_state() -> None:
    """A method that forward never names is reached where something registers a hook."""
    hooked = DEEP.replace("self.layers = ", "self.register_forward_hook(self.count)\n        self.layers = ").replace(
        "    def forward", "    def count(self, *_):\n        self.calls = 1\n\n    def forward"
    )
    assert keeps_state(problem_of(DEEP).model_copy(update={"source": hooked}))
    assert not keeps_state(problem_of(DEEP).model_copy(update={"source": hooked.replace("self.calls = 1", "return None")}))


@pytest.mark.parametrize(("operator", "batch_first", "shape"), [("lstm", False, (20, 2, 4)), ("gru", True, (2, 20, 4))])
def test_a_recurrent_layer_launches_a_kernel_for_each_step(operator: str, batch_first: bool, shape: tuple[int, ...]) -> None:
    """Three layers over 20 steps in both directions are 120 launches at least, wherever the steps lie in the input."""
    x = TensorMeta(tuple((size,) for size in shape), "float32")
    node = Node(operator, f"aten.{operator}.input", (Ref("x"), Ref("h"), [], True, 3, 0.0, True, True, batch_first), {}, (x,))
    graph = OperatorGraph(("x",), {}, {"x": x}, (node,), Ref(operator), traces=1)
    assert launches(graph, Schedule(regions=(Region(id="r0", nodes=(operator,)),))) == 120


def test_a_reference_with_loops_over_its_sizes_can_be_captured() -> None:
    """A reference that is kept as it stands, because it runs other operators at other sizes, is captured whole."""
    graph = trace_problem(problem_of(function("torch.stack([torch.tanh(row[: at + 1]).sum() for at, row in enumerate(x)])")))
    assert graph.blocked
    assert options(graph, initial_schedule(graph), load_sheet("h200")) == (GRAPH,)


@pytest.mark.slow
def test_without_cuda_the_forward_runs_as_it_stands(tmp_path: Path) -> None:
    """A captured module gives the reference's results, buffers included, where there is no device to capture on."""
    problem, source = captured(DEEP)
    (result,) = run_worker("interpreter_worker.py", [write_job(tmp_path, "deep", problem, source)], interpret=True)
    assert result.get("error", 9.0) <= 1.0, result


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no NVIDIA GPU")
def test_replays_follow_their_inputs_and_parameters(tmp_path: Path) -> None:
    """Each replay reads the inputs and weights of its own call, updates running statistics once, and gives a fresh tensor."""
    _, source = captured(DEEP)
    (tmp_path / "deep_captured.py").write_text(source)
    model = load(str(tmp_path / "deep_captured.py")).ModelNew
    mine, plain = model(8).cuda(), model(8).cuda()
    plain.load_state_dict(mine.state_dict())
    forward = model.forward.__wrapped__
    earlier = []
    for step in range(3):
        with torch.no_grad():
            x = torch.randn(3, 8, device="cuda")
            mine.layers[0].weight.add_(step)
            plain.layers[0].weight.add_(step)
            got, expected = mine(x), forward(plain, x)
        torch.testing.assert_close(got, expected)
        torch.testing.assert_close(dict(mine.named_buffers()), dict(plain.named_buffers()))
        assert all(got.data_ptr() != other.data_ptr() for other in earlier)
        earlier.append(got)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no NVIDIA GPU")
@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_replays_of_recurrent_layers_follow_their_inputs_and_weights(tmp_path: Path, name: str) -> None:
    """Recurrent kernels of cuDNN read the sequence and the weights of each call, also weights that no longer lie in one piece."""
    _, source = captured(RECURRENT.format(name=name, batch_first=True, shape="2, 3, 4"))
    (tmp_path / "cells_captured.py").write_text(source)
    model = load(str(tmp_path / "cells_captured.py")).ModelNew
    mine = model().cuda()
    forward = model.forward.__wrapped__
    for step in range(4):
        with torch.no_grad():
            x = torch.randn(2, 3, 4, device="cuda")
            mine.cells.weight_hh_l0.mul_(1.0 + step)
            if step == 2:
                mine.cells.weight_ih_l1.data = mine.cells.weight_ih_l1.data.clone()
            torch.testing.assert_close(mine(x), forward(mine, x))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no NVIDIA GPU")
def test_replays_follow_weights_that_are_packed(tmp_path: Path) -> None:
    """A captured forward that packs its weights is captured anew when they were written in place, or packed again by hand."""
    problem = problem_of(DEEP)
    graph = trace_problem(problem)
    parts = {"BLOCK_M": 16, "BLOCK_N": 16, "BLOCK_K": 16, "GROUP_M": 1, "SPLIT_K": 1, "num_warps": 2, "num_stages": 2, "right": "as_is"}
    ways = {"precision": "fp16x3", "accumulate": "chunked", "programs": "data_parallel", "loads": "pointers", "weights": "prepacked"}
    regions = [
        region.model_copy(update={"template": "matmul", "parameters": {**parts, **ways}})
        if any(graph.by_name[name].op == "linear" for name in region.nodes)
        else region
        for region in initial_schedule(graph).regions
    ]
    source = emit(problem, graph, Schedule(regions=tuple(regions), captured=True)).source
    (tmp_path / "deep_packed.py").write_text(source)
    model = load(str(tmp_path / "deep_packed.py")).ModelNew(8).cuda()
    x = torch.randn(3, 8, device="cuda")
    with torch.no_grad():
        for step in range(4):
            if step == 2:
                # not noticed by itself: the version counter of what `.data` gives is another one
                model.layers[0].weight.data.mul_(3.0)
                model.pack_weights()
            else:
                model.layers[0].weight.mul_(1.0 + step)
            for _ in range(2):
                torch.testing.assert_close(model(x), model.layers(x))
