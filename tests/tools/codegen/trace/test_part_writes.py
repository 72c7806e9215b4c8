"""The names that a trace's values get."""

from __future__ import annotations

from tools.codegen.ir.graph import Node
from tools.codegen.trace.part_writes import Names


def test_names_are_free_among_inputs_and_all_nodes_so_far() -> None:
    """Neither an input's name nor that of a node is given again, whoever has added the node."""
    nodes: list[Node] = []
    names = Names({"x"}, nodes)
    assert names.free("x_") == "x_value"
    nodes += [Node("x_value", "aten.relu.default", (), {}, ()), Node("add", "aten.relu.default", (), {}, ())]
    assert names.free("x") == "x_value_value"
    assert names.free("add_") == "add_value"
