"""Numbers that a graph of torch.fx has as tensors of one element, as a loop over `nonzero` gives them: folded into what reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.codegen.trace.dispatch.masks import Masks, op_of, rank

if TYPE_CHECKING:
    from torch.export import ExportedProgram


def fold_numbers(program: ExportedProgram) -> None:
    """Write parts of tensors that are taken at a constant position as such; the constants are left without readers."""
    import torch

    specs = program.graph_signature.input_specs
    masks = Masks({spec.arg.name: program.constants[spec.target] for spec in specs if spec.target in program.constants})
    graph = program.graph
    for node in list(graph.nodes):
        if op_of(node) != "index" or len(node.args[1]) != 1 or (number := masks.number(node.args[1][0])) is None:
            continue
        with graph.inserting_before(node):
            part = graph.call_function(torch.ops.aten.select.int, (node.args[0], 0, number))
            part.meta["val"] = node.meta["val"] if not rank(node.args[1][0]) else node.meta["val"][0]
            if rank(node.args[1][0]):
                part = graph.call_function(torch.ops.aten.unsqueeze.default, (part, 0))
                part.meta["val"] = node.meta["val"]
        node.replace_all_uses_with(part)
