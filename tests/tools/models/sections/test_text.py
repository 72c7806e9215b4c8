"""A forward is cut into sections: statements between the modules that it calls, which give the same as before."""

from __future__ import annotations

import textwrap
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tools.models.records import SectionedForward
from tools.models.sections.expressions import Attributes
from tools.models.sections.text import UncutForwardError, only, sectioned

MODULES = ("self.block", "self.head", "self.blocks", "self.norm")
RESIDUAL = """
def forward(self, x):
    y = self.block(torch.tanh(x) * self.scale) + x
    return torch.softmax(self.head(y[:, -1]) / 2.0, -1)
"""
LOOP = """
def forward(self, x):
    carried = x * 0.0
    for block in self.blocks:
        y = block(x)
        carried = carried * 0.5 + y
        x = torch.relu(y)
    return self.head(x)
"""


def cut(source: str, kept: set[str] | None = None) -> SectionedForward:
    """Cut a source whose modules are those above."""
    attributes = Attributes(lambda chain: chain not in MODULES, lambda chain: chain == "self.norm")
    return sectioned(textwrap.dedent(source).strip(), "digest", attributes, (), kept or set())


def called(text: str, sections: dict[str, str], x: torch.Tensor) -> Any:
    """Run a forward on an object that has modules, a value, and the sections."""
    names: dict[str, Any] = {"torch": torch}

    def function(source: str) -> Any:
        exec(source, names)
        return names["forward"]

    blocks = [torch.sin, torch.cos, torch.atan]
    this = SimpleNamespace(block=torch.sin, head=lambda value: value * 3.0, norm=torch.sin, scale=1.5, blocks=blocks)
    for name, source in sections.items():
        section = function(source)
        setattr(this, name, lambda *given, section=section: section(None, *given))
    return function(text)(this, x)


@pytest.mark.parametrize("source", [RESIDUAL, LOOP])
def test_a_forward_of_sections_gives_the_same(source: str) -> None:
    """Calls of modules stand by themselves, in a loop too, where a section gives what its next call takes."""
    x = torch.linspace(-2.0, 2.0, 12).view(1, 3, 4)
    found = cut(source)
    expected = called(source, {}, x)
    assert len(found.sections) == (3 if source == RESIDUAL else 2)
    assert torch.equal(called(found.text, {one.name: one.text for one in found.sections}, x), expected)


def test_what_is_not_wanted_of_the_sections_stands_in_the_forward_again() -> None:
    """With some sections, or none, the forward gives the same."""
    x = torch.linspace(-2.0, 2.0, 12).view(1, 3, 4)
    whole = cut(RESIDUAL)
    for names in ({"section_2"}, set()):
        found = only(whole, names)
        assert {one.name for one in found.sections} == names
        assert found.text.count("self.section") == len(names)
        assert torch.equal(called(found.text, {one.name: one.text for one in found.sections}, x), called(RESIDUAL, {}, x))


def test_a_section_is_given_values_of_the_module_but_no_module() -> None:
    """A parameter is an argument; a layer's call stays outside, and so does what is done with modules themselves."""
    found = cut(RESIDUAL)
    assert [one.call for one in found.sections] == [
        "part_1 = self.section_1(x, self.scale)",
        "y = self.section_2(part_2, x)",
        "return self.section_3(part_3)",
    ]
    [scaled] = cut("def forward(self, x):\n    return self.block(x) * self.scale.exp()").sections
    assert scaled.call == "return self.section_1(part_1, self.scale)"
    [kept] = cut("def forward(self, x):\n    first = self.blocks[0]\n    x = first(x)\n    return x * 2.0 + 1.0").sections
    assert kept.body == "return x * 2.0 + 1.0"


def test_a_small_module_is_called_in_a_section() -> None:
    """A residual and the norm behind it are one; a norm by itself is no section."""
    first, last = cut("def forward(self, x):\n    y = self.block(x) + x\n    return self.head(self.norm(y)) + y").sections
    assert (first.call, first.modules) == ("y, part_2 = self.section_1(part_1, x)", ("norm",))
    assert "part_2 = self.norm(y)" in first.body
    assert last.call == "return self.section_2(part_3, y)"
    assert not cut("def forward(self, x):\n    return self.head(self.norm(self.block(x)))").sections


def test_a_layer_that_reads_nothing_of_a_section_is_called_before_it() -> None:
    """What is done with both results is one section; a layer that reads what a section makes comes after it."""
    found = cut("def forward(self, x):\n    a = torch.exp(self.block(x))\n    b = self.head(x) * a\n    return self.head(b)")
    assert [one.body for one in found.sections] == ["a = torch.exp(part_1)\nb = part_2 * a"]
    assert found.text.index("part_2 = self.head(x)") < found.text.index("b = self.section_1")


@pytest.mark.parametrize(
    "statement",
    [
        "y.add_(1.0)",
        "y += 1.0",
        "y = torch.rand(4)",
        "y = y.sum().item()",
        "y = Output(y)",
        "y = self.scaled(y)",
        "y[0] = 1.0",
        "y = [one * 2.0 for one in y]",
        "assert y.sum() > 0",
        "print(y)",
    ],
)
def test_what_does_more_than_compute_stays_where_it_is(statement: str) -> None:
    """Writes in place, random numbers, waiting for the device, objects, methods of the module, and what is no expression of tensors."""
    found = cut(f"def forward(self, x):\n    y = torch.tanh(self.block(x))\n    {statement}\n    return torch.exp(y)")
    assert statement in found.text
    assert [one.body for one in found.sections] == ["y = torch.tanh(part_1)", "return torch.exp(y)"]


def test_a_statement_that_is_to_stay_stays() -> None:
    """Sections end before it and begin after it."""
    found = cut("def forward(self, x):\n    a = x * 2.0\n    rows = len(a) + 1\n    return a / rows", {"rows = len(a) + 1"})
    assert "rows = len(a) + 1" in found.text
    assert [one.outputs for one in found.sections] == [("a",), ()]


@pytest.mark.parametrize(
    "source",
    [
        "def forward(self, x):\n    return super().forward(x) + 1.0",
        "def forward(self, x):\n    return (lambda y: y + 1.0)(x)",
        "def forward(self, x):\n    yield x + 1.0",
        "async def forward(self, x):\n    return x + 1.0",
        "def forward(self, x):\n    return x + self.__hidden",
        "def forward(self, x):\n    import math\n    return x + math.pi",
    ],
)
def test_a_forward_that_cannot_stand_elsewhere_is_left_as_it_is(source: str) -> None:
    """What needs its class around it, or is more than one function."""
    with pytest.raises(UncutForwardError):
        cut(source)
