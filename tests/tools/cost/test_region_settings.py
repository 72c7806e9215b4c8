"""Settings of one region: which are looked at, and which of them are chosen."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.tools.codegen.harness import trace_problem, traced_text
from tests.tools.codegen.samples import function
from tools.codegen import initial_schedule
from tools.codegen.schedule.plan import Planned, plan_region
from tools.codegen.templates.registry import knobs_of
from tools.codegen.templates.shared.knob import Parameters
from tools.cost.launches import region_us
from tools.cost.rank_schedules import modelled_choices
from tools.cost.region_settings import HOPELESS, SURE, TRUSTED, Setting, distance, modelled_names, numbers, spread
from tools.cost.walk import Walk
from tools.hardware import load_sheet
from tools.problems import load_problem
from tools.records import PrecisionPolicy

SHEET = load_sheet("h200")
START: Parameters = {"algorithm": "online", "BLOCK_N": 1024, "num_warps": 4}


@cache
def planned(body: str, inputs: str, arguments: str = "x") -> Planned:
    """Lower the first region of a reference."""
    with TemporaryDirectory() as scratch:
        file = Path(scratch) / "sample.py"
        file.write_text(function(body, inputs, arguments))
        graph = trace_problem(load_problem(file))
    return plan_region(graph, initial_schedule(graph).regions[0].nodes)


def product() -> Planned:
    """A square product of float32."""
    return planned("torch.matmul(x, y)", "torch.randn(4096, 4096), torch.randn(4096, 4096)", "x, y")


def setting(us: float, **changes: bool | float | str) -> Setting:
    """A setting that differs from the start in `changes`."""
    return Setting(us, {**START, **changes})


def test_all_words_are_looked_at() -> None:
    """However cheap the neighbours of one precision are, each precision that the policy allows is among what was looked at."""
    start = product().defaults(SHEET.sms)
    found = Walk(product(), start, modelled_names(knobs_of("matmul")), SHEET, PrecisionPolicy(name="tf32")).ranked()
    seen = {(one.parameters["precision"], one.parameters["right"]) for one in found}
    assert {("tf32", "k_major"), ("tf32", "as_is"), ("tf32x3", "k_major"), ("fp16x3", "as_is")} <= seen


def test_numbers_alone_leave_words_as_they_are() -> None:
    """The tuner's walk changes numbers, and never a precision."""
    start = product().defaults(SHEET.sms)
    found = Walk(product(), start, numbers(knobs_of("matmul")), SHEET).ranked()
    assert {one.parameters["precision"] for one in found} == {start["precision"]}
    assert any(one.parameters == start for one in found)


def test_idle_numbers_do_not_make_another_setting() -> None:
    """A row that is held in registers has no steps: settings that differ in their steps alone are one."""
    softmax = planned("torch.softmax(x, -1)", "torch.randn(16384, 1024)")
    start = softmax.defaults(SHEET.sms)
    held = [
        one.parameters
        for one in Walk(softmax, start, modelled_names(knobs_of("rows")), SHEET, PrecisionPolicy()).ranked()
        if one.parameters["algorithm"] == "registers"
    ]
    assert {(each["BLOCK_N"], each["UNROLL"]) for each in held} == {(start["BLOCK_N"], start["UNROLL"])}


def test_the_coders_own_values_come_first_unless_much_is_promised() -> None:
    """The start is taken where the best is a little faster by the model, and not where it is much faster."""
    near, far = setting(100.0, num_warps=1), setting(50.0, num_warps=1)
    own = Setting(99.0 * TRUSTED, START)
    assert spread([near, own], START, 1) == (own,)
    assert spread([far, own], START, 1) == (far,)


def test_among_equals_the_nearest_to_the_start_is_taken() -> None:
    """Times that the model cannot tell apart are decided by how little is changed."""
    wild, tame = setting(100.0, num_warps=32, BLOCK_N=16), setting(99.0 * SURE, num_warps=8)
    assert spread([wild, tame], START, 1) == (tame,)


def test_the_next_ones_differ_and_are_not_hopeless() -> None:
    """A neighbour of what was chosen is skipped, and so is what the model thinks hopelessly slow."""
    found = [
        setting(100.0),
        setting(101.0, num_warps=8),
        setting(120.0, num_warps=1),
        setting(150.0, algorithm="looped"),
        setting(101.0 * HOPELESS, algorithm="split"),
    ]
    assert [one.us for one in spread(found, START, 9)] == [100.0, 120.0, 150.0]


def test_distance_is_added_exactly() -> None:
    """Whether a setting is another one does not hang on rounding, which follows the order of a set and differs from process to process."""
    names = [f"n{place}" for place in range(9)]
    assert distance(dict.fromkeys(names, 3), dict.fromkeys(names, 5)) == math.fsum([abs(math.log2(3 / 5))] * len(names))


def test_distance_counts_powers_of_two_and_words() -> None:
    """Two doublings are two apart, another word is two apart, and what the model ignores counts nothing."""
    assert distance(START, {**START, "BLOCK_N": 4096}) == 2.0
    assert distance(START, {**START, "algorithm": "split"}) == 2.0
    assert distance({**START, "r0.GROUP_M": 8}, {**START, "r0.GROUP_M": 1}) == 0.0


def test_what_nobody_reads_costs_nothing() -> None:
    """A maximum whose positions are dropped takes the time of a maximum: one pass over the input."""
    dropped = planned("torch.max(x, dim=1)[0]", "torch.randn(64, 4096, 4095)")
    plain = planned("torch.amax(x, dim=1)", "torch.randn(64, 4096, 4095)")
    start = plain.defaults(SHEET.sms)
    assert region_us(dropped, start, SHEET) == region_us(plain, start, SHEET)


def test_tiles_are_held_against_what_their_rivals_would_be_given() -> None:
    """Rows of a norm would be given four warps each, which is slower than tiles, whatever the model thinks of two rows in two warps."""
    inputs = "torch.randn(8, 4096, 1536).bfloat16(), torch.randn(8, 1536).bfloat16(), torch.randn(8, 1536).bfloat16()"
    _, graph = traced_text(function("F.layer_norm(x, (1536,)) * (1 + y[:, None]) + z[:, None]", inputs, "x, y, z"))
    first = modelled_choices(graph, SHEET, PrecisionPolicy(), most=1)[0]
    assert [region.template for region in first.schedule.regions] == ["tile"]
