"""Copies that are returned: the memory of an argument is the caller's."""

from __future__ import annotations

import pytest

from tests.tools.codegen.harness import traced_text
from tests.tools.codegen.samples import function


@pytest.mark.parametrize("body", ["x.clone()", "x.view(-1).clone()", "x[1:].clone()", "x.clone().view(-1)", "x[:, 1:].contiguous()"])
def test_a_copy_of_an_argument_is_made(body: str) -> None:
    """What is returned is a copy where the reference copies an argument, or a view of one: who writes to it leaves the argument alone."""
    graph = traced_text(function(f"({body}, x * 2)"), "copied")[1]
    assert {"clone", "contiguous"} & {node.op for node in graph.nodes}


def test_a_copy_of_what_was_made_is_none() -> None:
    """What forward made belongs to nobody else, and is returned as it is."""
    graph = traced_text(function("(x * 2).view(-1).clone()"), "made")[1]
    assert [node.op for node in graph.nodes] == ["mul", "view"]
