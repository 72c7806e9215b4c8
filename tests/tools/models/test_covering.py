"""What of a model is replaced where it is known what each kernel would take."""

from __future__ import annotations

from tests.tools.models.test_choice import group
from tools.cost.compiled import Compiled
from tools.hardware import load_sheet
from tools.models.choosing.choice import choose
from tools.models.records import Capture, Group
from tools.records import DEFAULT_POLICY, OperatorFamily

FIRST = group("first", ("block.conv",), 0.2, 100.0)
NORMS = group("norms", ("block.norm", "norm"), 0.4, 100.0)
BLOCK = group("block", ("block",), 0.5, 250.0)


def gains(modelled: dict[str, float], *groups: Group, compiled: dict[str, Compiled] | None = None) -> dict[str, tuple[float, str]]:
    """Speed-up and reason by group."""
    found = Capture(title="M", clock="", us={"a": 1.0}, weights={"a": 1.0}, modules=1, groups=groups)
    sheet = load_sheet("h200")
    rows = choose(found, sheet, DEFAULT_POLICY, budget=1, most=6, measured=True, modelled=modelled, compiled=compiled)
    return {row.group: (round(row.gain, 3), row.why_not) for row in rows}


def test_a_module_takes_the_place_of_those_in_it_where_it_saves_more() -> None:
    """A block saves 0.35 of the time, its convolution 0.05 and its norm 0.15; the norm outside of it keeps its kernel and its gain."""
    found = gains({"first": 75.0, "norms": 25.0, "block": 75.0}, FIRST, NORMS, BLOCK)
    assert found == {"block": (1.538, ""), "norms": (1.176, ""), "first": (1.053, "in or around block")}


def test_modules_inside_stay_where_they_save_more() -> None:
    """The same block with a slower kernel stays what it is, and both norms are replaced."""
    found = gains({"first": 75.0, "norms": 25.0, "block": 200.0}, FIRST, NORMS, BLOCK)
    assert found == {"norms": (1.429, ""), "first": (1.053, ""), "block": (1.111, "in or around norms")}


def test_what_no_kernel_makes_faster_is_not_replaced() -> None:
    """Nor what none is known for, however far from the roofline it is."""
    found = gains({"first": 120.0}, FIRST, NORMS)
    assert found == {"first": (1.0, "too little to gain"), "norms": (1.0, "too little to gain")}


def test_small_gains_are_taken_where_they_cost_no_run() -> None:
    """Seven thousandths of the whole time are, two are not."""
    found = gains({"first": 96.5, "norms": 99.5}, FIRST, NORMS)
    assert found == {"first": (1.007, ""), "norms": (1.002, "too little to gain")}


def test_of_what_is_alike_the_outer_module_is_replaced() -> None:
    """A block that saves a little less than the modules in it do is one operator in the place of two."""
    inner = group("second", ("block.norm",), 0.2, 100.0)
    found = gains({"first": 25.0, "second": 25.0, "block": 105.0}, FIRST, inner, BLOCK)
    assert {name: why for name, (_, why) in found.items()} == {"block": "", "first": "in or around block", "second": "in or around block"}


def test_what_a_compiler_would_save_too_is_not_promised() -> None:
    """Its kernel for the norm is as fast as ours, so the norm brings nothing; of the whole block it leaves more than ours does."""
    norm, block = group("norms", ("block.norm", "norm"), 0.4, 20.0), group("block", ("block",), 0.5, 29.0)
    alone = {"norms": 5.0, "block": 6.0}
    assert gains(alone, norm)["norms"][1] == ""
    beside = gains(alone, norm, block, compiled={"norms": Compiled(15.0, 5.0), "block": Compiled(25.0, 9.0)})
    assert beside["norms"] == (1.0, "in or around block")
    assert gains(alone, norm, compiled={"norms": Compiled(15.0, 5.0)})["norms"] == (1.0, "torch.compile would gain as much, estimated")
    assert 1.05 < beside["block"][0] < gains(alone, block)["block"][0]


def test_a_compiler_leaves_what_its_products_take() -> None:
    """Of a block of 250 us whose product takes 200 it leaves 200, however little the model expects; a product outside is none of it."""
    compiled = {"block": Compiled(250.0, 50.0)}
    assert gains({"block": 100.0}, BLOCK, compiled=compiled)["block"][0] == 1.0
    for path, gain in (("block.up", round(1 / (1 - 0.5 * (200.0 - 100.0) / 250.0), 3)), ("up", 1.0)):
        product = group("up", (path,), 0.4, 200.0)
        assert product.trace
        work = product.trace.work.model_copy(update={"families": (OperatorFamily.MATMUL,)})
        product = product.model_copy(update={"trace": product.trace.model_copy(update={"work": work})})
        assert gains({"block": 100.0}, BLOCK, product, compiled=compiled)["block"][0] == gain


def test_the_model_is_as_wrong_of_our_kernels_as_of_eagers_up_to_a_factor() -> None:
    """A call that takes many times as long as by the model waits for something: a compiler keeps that, a kernel does not."""
    slow, waiting = (group("norms", ("norm",), 0.4, us) for us in (25.0, 1000.0))
    assert gains({"norms": 9.0}, slow, compiled={"norms": Compiled(15.0, 9.0)})["norms"][0] == 1.0
    assert gains({"norms": 9.0}, waiting, compiled={"norms": Compiled(15.0, 9.0)})["norms"][0] > 1.1


def test_calls_in_other_workloads_stay_those_of_the_inner_group() -> None:
    """A block is replaced in one workload alone; in the other, which comes once in ten times, its norm is."""
    often = {"a": 9, "b": 1}
    norm = group("norms", ("block.norm",), 0.4, 100.0).model_copy(update={"calls": often})
    found = gains({"norms": 25.0, "block": 75.0}, norm, BLOCK)
    assert found == {"block": (1.538, ""), "norms": (1.031, "")}
    everywhere = BLOCK.model_copy(update={"calls": often})
    assert gains({"norms": 25.0, "block": 75.0}, norm, everywhere)["norms"][1] == "in or around block"


def test_what_the_model_cannot_tell_from_the_library_is_left_to_the_proof() -> None:
    """A compiler fuses nothing there, and our kernel is modelled a little slower: half of what the model does not tell is hoped for."""
    block = group("block", ("block",), 0.5, 30.0)
    assert gains({"block": 26.0}, block, compiled={"block": Compiled(25.0, 25.0)})["block"] == (round(1 / (1 - 0.5 * 0.05), 3), "")
    assert gains({"block": 29.0}, block, compiled={"block": Compiled(25.0, 25.0)})["block"][0] == 1.0
    assert gains({"block": 16.0}, block, compiled={"block": Compiled(25.0, 15.0)})["block"][0] == 1.0
