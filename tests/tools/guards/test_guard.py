"""Guarded files: what they refuse, what they say, what they leave alone, and when they ask the reference."""

from __future__ import annotations

import copy
import re
from dataclasses import replace
from typing import Any

import pytest
import torch

from tests.tools.guards.cases import NEW, SOURCE, VARIANTS, example, loaded, made, problem, text, wrong
from tools.evaluation.supervisor.static_rules import inspect_source
from tools.guards import contract_of, embeddable, guarded, unguarded
from tools.guards.checks import Size
from tools.records import ProblemForm, ScalarSpec

WRONG = {name: (changed, said) for name, changed, said in wrong()}


@pytest.mark.parametrize("name", WRONG)
def test_a_call_that_a_file_was_not_made_for_is_refused(name: str) -> None:
    """Each kind of wrong call raises one error with what came and what the file was made for, also after right calls."""
    changed, said = WRONG[name]
    module = made()
    for _ in range(2):
        module(**example())
    with pytest.raises(ValueError, match=re.escape(said)) as raised:
        module(**example(**changed))
    assert "It was made for ModelNew(x.shape[1], 5)(x: torch.float32 [any, any], times: 2)" in str(raised.value)


@pytest.mark.parametrize(
    ("size", "worth"),
    [
        ("(x.shape[1] + 1) // 2", 5), ("-(-x.shape[1] // 4) * 4", 12), ("x.shape[1] - (-(-x.shape[1] // 4))", 6), ("-x.shape[1] % 4", 3),
        ("(x.shape[0] - 1) * x.shape[1] + 3", 12), ("x.shape[0] * (x.shape[1] // 4 - 5)", -6),
        ("x.shape[1] - (int(x.shape[1] * 0.85))", None),
    ],
)  # fmt: skip
def test_sizes_with_parentheses_and_signs_are_worked_out(size: str, worth: int | None) -> None:
    """As Python would; what a share leaves is not told, and may be anything."""
    known = {"x.shape[0]": 2, "x.shape[1]": 9}
    assert Size(size).worth(known) == worth
    assert Size(size).allows(100, known) == (worth is None)


def test_right_calls_are_answered() -> None:
    """Other sizes that the variants allow, positions and keywords, and layouts that have to be copied give right results."""
    module, x = made(), example()["x"]
    assert torch.equal(module(x, 2), module(x=x.T.contiguous().T, times=2))
    assert module(x[:3], 2).shape == (3, 5)
    assert made(4, 5)(x[:, :4], 2).shape == (8, 5)


@pytest.mark.parametrize("name", ["seen", "gradients", "type", "compute", "operator", "rounds", "forward_"])
def test_inputs_may_have_names_that_the_guard_uses(name: str) -> None:
    """Whatever an input is called, a call by keyword is right, and what is wrong with another is said by that name."""
    contract = contract_of(problem(), VARIANTS)
    x, times = contract.inputs
    source = re.sub(r"\bx\b", name, NEW).replace("times", "seen" if name == "forward_" else "times")
    renamed = replace(contract, inputs=(replace(x, name=name), replace(times, name="seen") if name == "forward_" else times))
    module = loaded(guarded(source, renamed)).ModelNew(6, 5).requires_grad_(False)
    given = {name: example()["x"], renamed.inputs[1].name: 2}
    assert torch.equal(module(**given), module(*given.values()))
    with pytest.raises(ValueError, match=re.escape(f"{name} has 3 dimensions")):
        module(**given | {name: example()["x"][None]})


def test_what_is_no_dense_tensor_is_refused() -> None:
    """A list in a tensor's place is a TypeError that names the tensors; a sparse tensor is told from a dense one."""
    with pytest.raises(TypeError, match="takes tensors as x"):
        made()([[1.0]], 2)
    with pytest.raises(ValueError, match="x is no dense tensor"):
        made()(torch.eye(6).to_sparse(), 2)


@pytest.mark.parametrize(("given", "said"), [((6, 4), "wide is 4, not 5"), ((6, 5, 2.0), "scale is 2.0, not 1.0")])
def test_other_arguments_of_the_constructor_are_refused(given: tuple[Any, ...], said: str) -> None:
    """What was folded into a kernel is compared when the module is made, defaults included."""
    with pytest.raises(ValueError, match=f"the constructor's {said}"):
        made(*given)


def test_a_parameter_that_wants_a_gradient_is_refused_while_gradients_are_on() -> None:
    """A gradient is never dropped in silence; without gradients the same module computes."""
    module = made().requires_grad_(True)
    with torch.no_grad():
        module(**example())
    with pytest.raises(ValueError, match=r"a gradient is wanted of net\.0\.weight, net\.0\.bias"):
        module(**example())


@pytest.mark.parametrize("parameters", [2, 12])
def test_parameters_that_were_changed_after_a_call_are_looked_at_again(parameters: int) -> None:
    """Another dtype, another shape, another part in one's place: all are seen, with few parameters and with many."""
    changes = {
        "is torch.float64": lambda module: module.double(),
        "shape[0] is 3": lambda module: setattr(module.parts[0], "weight", torch.nn.Parameter(torch.ones(3, 4))),
        "shape[1] is 2": lambda module: setattr(module, "parts", torch.nn.ModuleList([torch.nn.Linear(2, 4)] * (parameters // 2))),
        "is not contiguous": lambda module: setattr(module.parts[0], "weight", torch.nn.Parameter(torch.ones(4, 4).T[:, ::1])),
        "a gradient is wanted": lambda module: module.requires_grad_(True),
    }
    source = f"""
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = torch.nn.ModuleList([torch.nn.Linear(4, 4) for _ in range({parameters // 2})])

    def forward(self, x):
        return x + 1
"""
    given = problem().abi
    specs = [
        spec.model_copy(update={"name": f"parts.{n}.{leaf}", "shape": shape})
        for n in range(parameters // 2)
        for spec, leaf, shape in ((given.parameters[0], "weight", (4, 4)), (given.parameters[1], "bias", (4,)))
    ]
    abi = given.model_copy(
        update={"arguments": (given.inputs[0].model_copy(update={"shape": (4, 4)}),), "parameters": tuple(specs), "init": "[]"}
    )
    new = loaded(guarded(source, contract_of(problem(abi=abi), ()))).ModelNew
    for said, change in changes.items():
        module = new().requires_grad_(False)
        module(torch.ones(4, 4))
        change(module)
        with pytest.raises(ValueError, match=re.escape(said)):
            module(torch.ones(4, 4))


def test_what_is_said_of_many_parameters_is_short() -> None:
    """A gradient wanted of many parameters names three of them."""
    names = [f"p{number}" for number in range(9)]
    specs = tuple(problem().abi.parameters[1].model_copy(update={"name": name, "shape": (2,)}) for name in names)
    abi = problem().abi.model_copy(update={"parameters": specs, "init": "[]"})
    made_of = "; ".join(f"self.{name} = torch.nn.Parameter(torch.ones(2))" for name in names)
    source = (
        "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n        "
        f"{made_of}\n\n    def forward(self, x, times):\n        return x\n"
    )
    with pytest.raises(ValueError, match="a gradient is wanted of p0, p1, p2 and 6 more, and"):
        loaded(guarded(source, contract_of(problem(abi=abi), ()))).ModelNew()(**example())


def test_a_copied_module_is_guarded_by_its_own_parameters() -> None:
    """A deep copy, made after a call, sees its own parameters change."""
    module = made()
    module(**example())
    other = copy.deepcopy(module)
    other.net[0].weight = torch.nn.Parameter(torch.ones(5, 6).double(), requires_grad=False)
    module(**example())
    with pytest.raises(ValueError, match=r"net\.0\.weight is torch\.float64"):
        other(**example())


@pytest.mark.parametrize("name", [name for name in WRONG if name not in ("another width", "another device", "another dtype")])
def test_with_a_fallback_wrong_calls_get_what_the_reference_gives(name: str) -> None:
    """The reference stands in the file and is called with the module's own parameters."""
    module = made(refers=True)
    reference = loaded(SOURCE).Model(6, 5).requires_grad_(False)
    reference.load_state_dict(module.state_dict())
    given = example(**WRONG[name][0])
    assert torch.equal(module(**given), reference(**given))


def test_with_a_fallback_gradients_reach_the_parameters() -> None:
    """Training goes through the reference: its gradients are those of the module's own parameters."""
    module = made(refers=True).requires_grad_(True)
    module(**example()).sum().backward()
    assert module.net[0].weight.grad is not None
    assert list(module.state_dict()) == ["net.0.weight", "net.0.bias"]


def test_with_a_fallback_other_arguments_of_the_constructor_make_the_reference() -> None:
    """A module that was made otherwise computes as the reference does."""
    module, reference = made(6, 5, scale=3.0, refers=True), loaded(SOURCE).Model(6, 5, 3.0)
    reference.load_state_dict(module.state_dict())
    assert torch.equal(module(**example()), reference(**example()))


def test_a_guard_takes_the_place_of_an_earlier_one() -> None:
    """A delivered file that is optimised again does not get two guards, and gives back its source."""
    assert unguarded(text()) == NEW
    assert guarded(text(), contract_of(problem(), ())).count("def guarded(") == 1


def test_a_file_offers_its_module_alone() -> None:
    """Functions that check nothing by themselves are not among what a file gives to `import *`."""
    assert loaded(text()).__all__ == ["ModelNew"]


def test_a_source_may_have_the_name_of_a_guard() -> None:
    """A guard takes a name that the source has not."""
    assert "def guarded_(model)" in guarded(f"guarded = 1\n{NEW}", contract_of(problem(), ()))


@pytest.mark.parametrize("refers", [False, True])
def test_no_static_rule_is_met_by_a_guard(*, refers: bool) -> None:
    """A guard is no reason for a note or a verdict."""
    assert inspect_source(text(refers=refers)) == inspect_source(NEW)


def test_what_cannot_stand_in_a_file_is_said() -> None:
    """An archive has no text, and some statements are for the top of a file alone."""
    assert "no text" in embeddable(problem(form=ProblemForm.EXPORTED))
    assert "function" in embeddable(problem(source="from torch import *\n" + SOURCE))
    assert embeddable(problem()) == ""


def test_autocast_is_refused() -> None:
    """Where the reference would round, a file that does not says so, also after right calls."""
    module, call = made(), example()
    module(**call)
    torch.set_autocast_enabled("cuda", True)
    try:
        with pytest.raises(ValueError, match="autocast is on"):
            module(**call)
    finally:
        torch.set_autocast_enabled("cuda", False)
    module(**call)


def test_what_the_reference_has_defaults_for_may_be_left_out() -> None:
    """Values at the end of a call that are the reference's own defaults need not be given; others must be."""
    at_end = problem()
    arguments = (at_end.abi.arguments[0], ScalarSpec(name="times", value=2, optional=True))
    optional = at_end.model_copy(update={"abi": at_end.abi.model_copy(update={"arguments": arguments})})
    module = loaded(guarded(NEW, contract_of(optional, ()))).ModelNew(6, 5).requires_grad_(False)
    x = example()["x"]
    assert torch.equal(module(x), module(x, 2))
    with pytest.raises(TypeError, match="times"):
        made()(x)
