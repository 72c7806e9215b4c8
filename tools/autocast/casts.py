"""Writes autocast's casts into a trace, which torch.export leaves out: it looks at operators before autocast does."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from torch import fx

from tools.autocast import REGION
from tools.autocast.rules import castable, dtype_for, flat


def is_region(node: fx.Node) -> bool:
    """Whether a node of a trace is such an operator."""
    return node.op == "call_function" and getattr(node.target, "__name__", "") == REGION


def has_regions(program: Any) -> bool:
    """Whether a program has such operators."""
    return any(map(is_region, program.graph.nodes))


def write_casts(program: Any, lower: torch.dtype | None, device: str) -> None:
    """Write the casts of a program that was traced under autocast to `lower` on such a device, or outside of autocast, into its graph.

    What it does in regions with an autocast of their own is put between the rest.
    """
    graph = program.graph
    _Casting(program.graph_module, device).nodes(list(graph.nodes), lower)
    graph.eliminate_dead_code()
    graph.lint()


class _Casting:
    """One graph; a tensor is cast to a dtype once."""

    def __init__(self, whole: Any, device: str) -> None:
        self._whole, self._graph, self._device = whole, whole.graph, device
        self._done: dict[tuple[fx.Node, torch.dtype], fx.Node] = {}

    def nodes(self, nodes: Sequence[fx.Node], lower: torch.dtype | None) -> None:
        for node in nodes:
            if is_region(node):
                self._region(node, lower)
            elif node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload) and lower is not None:
                self._operator(node, node.target, lower)

    def _operator(self, node: fx.Node, target: Any, lower: torch.dtype) -> None:
        every = list(flat((*node.args, *node.kwargs.values())))
        given = [castable(one.meta["val"]) for one in every if _is_tensor(one)]
        asked = any(isinstance(one, torch.dtype) for one in every)
        dtype = dtype_for(target._schema.name + (f".{name}" if (name := target._schema.overload_name) else ""), given, lower, asked=asked)
        if dtype is not None:
            node.args = fx.map_arg(node.args, lambda one: self._cast(node, one, dtype))
            node.kwargs = fx.map_arg(node.kwargs, lambda one: self._cast(node, one, dtype))

    def _cast(self, user: fx.Node, value: fx.Node, dtype: torch.dtype) -> fx.Node:
        if not _is_tensor(value) or castable(value.meta["val"]) in (None, dtype):
            return value
        key = value, dtype
        if key not in self._done:
            with self._graph.inserting_before(user):
                made = self._graph.call_function(torch.ops.aten.to.dtype, (value, dtype))
            made.meta = {**{name: value.meta[name] for name in ("nn_module_stack", "stack_trace") if name in value.meta}}
            made.meta["val"] = value.meta["val"].to(dtype)
            self._done[key] = made
        return self._done[key]

    def _region(self, node: fx.Node, lower: torch.dtype | None) -> None:
        """Put the operators of a region in its place."""
        device, dtype, enabled, _, inner, *given = node.args
        part = getattr(self._whole, str(inner.target))  # type: ignore[union-attr]  # a node that names it
        places = [one for one in part.graph.nodes if one.op == "placeholder"]
        known: dict[fx.Node, Any] = dict(zip(places, given, strict=True))
        before = set(self._graph.nodes)
        with self._graph.inserting_before(node):
            for one in part.graph.nodes:
                if one.op == "get_attr":
                    # a region within this one
                    name = f"{inner.target}_{one.target}"  # type: ignore[union-attr]  # the same
                    setattr(self._whole, name, getattr(part, str(one.target)))
                    known[one] = self._graph.get_attr(name)
                elif one.op not in ("placeholder", "output"):
                    known[one] = self._graph.node_copy(one, lambda value: known[value])
        results = fx.map_arg(part.graph.output_node().args[0], lambda value: known[value])
        for user in list(node.users):
            if user.target is operator.getitem:
                user.replace_all_uses_with(results[user.args[1]])
                self._graph.erase_node(user)
        if not isinstance(results, list | tuple):
            node.replace_all_uses_with(results)
        self._graph.erase_node(node)
        own = (dtype if enabled else None) if device == self._device else lower
        self.nodes([one for one in self._graph.nodes if one not in before], own)  # type: ignore[arg-type]  # a dtype


def _is_tensor(value: Any) -> bool:
    return isinstance(value, fx.Node) and isinstance(value.meta.get("val"), torch.Tensor)
