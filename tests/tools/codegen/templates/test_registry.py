"""Every template keeps the contract, and one is added by one object: whoever asks templates finds it in the registry."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import pytest

from tests.tools.codegen.dispatch_samples import SENT
from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.loop_samples import LINEAR
from tests.tools.codegen.recurrent_samples import LSTM
from tests.tools.codegen.samples import function
from tools.codegen import OperatorGraph, Schedule, apply, emit, initial_schedule, options
from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.launch import LaunchWork
from tools.codegen.ir.views import is_view
from tools.codegen.schedule.plan import plan_region
from tools.codegen.templates.pointwise.layout import PointwiseLayout, pointwise_layout_of
from tools.codegen.templates.registry import TEMPLATES, template_called
from tools.codegen.templates.shared.frame import RegionText
from tools.codegen.templates.shared.knob import Knob, Parameters, Value
from tools.codegen.templates.shared.template import Template
from tools.cost.launches import region_us
from tools.cost.rank_schedules import modelled_choices
from tools.hardware import load_sheet
from tools.records import Action, ActionKind, HardwareSheet, PrecisionPolicy
from tools.tuning import tunable_regions

SOURCE = '''
import triton
import triton.language as tl


@triton.jit
def {name}_kernel(x_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    """out = |x|."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.abs(tl.load(x_ptr + offs, offs < n_elements)), offs < n_elements)


def {name}(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    {name}_kernel[(triton.cdiv(x.numel(), {block}),)](x, out, x.numel(), BLOCK={block})
    return out
'''
ABSOLUTE = function("torch.abs(x)", "torch.randn(16384, 4096)")
MAGNITUDE = "magnitude"
"""Name of a graph of its own: plans are kept with a graph."""
SHEET = load_sheet("h200")


class Magnitude(Template):
    """The absolute value of one tensor, and nothing else."""

    name = "magnitude"
    knobs: Mapping[str, Knob] = {"BLOCK": Knob(ActionKind.TILING, (256, 512, 1024))}

    def accepts(self, kernel: Kernel) -> bool:
        """Take one absolute value."""
        return [expr.op for expr in kernel.builder.exprs] == ["load", "abs"]

    def layout(self, kernel: Kernel) -> PointwiseLayout:
        """Lay it out as a pointwise region."""
        return pointwise_layout_of(kernel)

    def defaults(self, kernel: Kernel, sms: int) -> Parameters:
        """Take the smallest block."""
        return {"BLOCK": 256}

    def fits(self, kernel: Kernel, parameters: Mapping[str, Value], knob: str, sheet: HardwareSheet) -> bool:
        """Every block fits but the largest."""
        return int(parameters["BLOCK"]) < 1024

    def emit(self, kernel: Kernel, name: str, parameters: Mapping[str, Value]) -> RegionText:
        """Write the kernel and its host function."""
        (load,), (output,) = kernel.builder.loads, kernel.outputs
        return RegionText(name, (load.ref,), (output.ref,), SOURCE.format(name=name, block=parameters["BLOCK"]), ())

    def launches(self, kernel: Kernel, parameters: Mapping[str, Value], sheet: HardwareSheet) -> tuple[LaunchWork, ...]:
        """One launch, twice as fast with twice the block."""
        total, block = kernel.outputs[0].meta.numel, int(parameters["BLOCK"])
        moved = 8.0 * total * 1024 / block
        programs = math.ceil(total / block)
        return (LaunchWork(programs, 4, moved, l2_bytes=moved, flight_bytes=4.0 * block, steps=1, lane_work=float(total)),)


@pytest.fixture
def magnitude() -> Iterator[Template]:
    """Register the template before all others, and do nothing else."""
    template = Magnitude()
    TEMPLATES.insert(0, template)
    yield template
    TEMPLATES.remove(template)


def generated(graph: OperatorGraph) -> Schedule:
    """Generate the only operator."""
    action = Action(kind=ActionKind.ALGORITHM, region="r0", parameters={"implementation": "generated", "sms": SHEET.sms})
    return apply(graph, initial_schedule(graph), action)


def test_without_it_the_region_is_pointwise() -> None:
    """An absolute value is for the pointwise template where no other takes it."""
    (region,) = generated(traced_text(ABSOLUTE)[1]).regions
    assert region.template == "pointwise"


def test_a_registered_template_gets_its_regions(magnitude: Template) -> None:
    """The partition offers a region to it, with its own first parameters."""
    (region,) = generated(traced_text(ABSOLUTE, MAGNITUDE)[1]).regions
    assert (region.template, region.parameters) == ("magnitude", {"BLOCK": 256})
    assert template_called("magnitude") is magnitude


def test_a_registered_templates_parameters_are_offered(magnitude: Template) -> None:
    """Actions change its parameters as far as it says that they fit."""
    graph = traced_text(ABSOLUTE, MAGNITUDE)[1]
    offered = [action.parameters for action in options(graph, generated(graph), SHEET) if action.kind is ActionKind.TILING]
    assert offered == [{"BLOCK": 512}]


def test_a_registered_template_is_emitted(magnitude: Template) -> None:
    """The module holds its kernel, and `forward` calls its host function."""
    problem, graph = traced_text(ABSOLUTE, MAGNITUDE)
    source = emit(problem, graph, generated(graph)).source
    assert "def abs_op_kernel(x_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):" in source
    assert "abs_1 = abs_op(x)" in source


def test_the_cost_model_ranks_a_registered_template(magnitude: Template) -> None:
    """The model's first choice is the new template, with the block that its launches make the fastest."""
    graph = traced_text(ABSOLUTE, MAGNITUDE)[1]
    first = modelled_choices(graph, SHEET, PrecisionPolicy())[0]
    assert [(region.template, region.parameters) for region in first.schedule.regions] == [("magnitude", {"BLOCK": 512})]
    assert tunable_regions(first.schedule) == ("r0",)


SAMPLES = {
    "tile": function("x[y] * 2.0", "torch.randn(512, 256), torch.randint(0, 512, (4096,))", "x, y"),
    "pointwise": ABSOLUTE,
    "rows": function("torch.softmax(x, dim=-1)"),
    "product": function("torch.matmul(torch.exp(x), y)", "torch.randn(ROWS, COLS), torch.randn(COLS, ROWS)", "x, y"),
    "matmul": function("torch.matmul(x, y)", "torch.randn(ROWS, COLS), torch.randn(COLS, ROWS)", "x, y"),
    "attention": function("F.scaled_dot_product_attention(x, y, z)", ", ".join(["torch.randn(2, 4, 256, 64)"] * 3), "x, y, z"),
    "convolution": function("F.conv2d(x, w)", "torch.randn(2, 16, 40, 40), torch.randn(32, 16, 3, 3)", "x, w"),
    "depthwise": function("F.conv2d(x, w, groups=16)", "torch.randn(2, 16, 40, 40), torch.randn(16, 1, 3, 3)", "x, w"),
    "pooling": function("F.max_pool2d(x, 3)", "torch.randn(2, 16, 60, 60)"),
    "recurrence": LINEAR,
    "recurrent": LSTM,
    "experts": SENT,
}


def test_each_template_has_its_folder_and_a_sample_here() -> None:
    """Names are those of the folders, each once."""
    assert [template.name for template in TEMPLATES] == list(dict.fromkeys(template.name for template in TEMPLATES))
    assert {template.name for template in TEMPLATES} == set(SAMPLES)
    assert all(type(template).__module__.split(".")[-2] == template.name for template in TEMPLATES)


@pytest.mark.parametrize("name", SAMPLES)
def test_first_parameters_are_legal_and_can_be_emitted(name: str) -> None:
    """A template's own first values are among its knobs' values, are not refused, and give a host function of the wanted name."""
    graph = traced_text(SAMPLES[name])[1]
    planned = plan_region(graph, [node.name for node in graph.nodes if not is_view(node)])
    first, template = planned.defaults(SHEET.sms), planned.template
    assert template.name == name
    assert all(value in template.knobs[knob].values for knob, value in first.items())
    assert not template.refusal(planned.kernel, first)
    assert "def chosen(" in template.emit(planned.kernel, "chosen", first).source


@pytest.mark.parametrize("name", SAMPLES)
def test_launches_have_programs_and_traffic(name: str) -> None:
    """What a template says of its launches at its first values is enough for the model to give a time."""
    graph = traced_text(SAMPLES[name])[1]
    planned = plan_region(graph, [node.name for node in graph.nodes if not is_view(node)])
    first = planned.defaults(SHEET.sms)
    launches = planned.template.launches(planned.kernel, first, SHEET)
    assert launches
    assert all(launch.programs > 0 and launch.warps > 0 and launch.dram_bytes > 0 for launch in launches)
    assert 0 < (region_us(planned, first, SHEET) or 0.0) < 1e6
