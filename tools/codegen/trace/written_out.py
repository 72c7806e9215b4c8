"""Operators that PyTorch itself can write as simpler ones: its decompositions, run on tensors without contents.

The generator has rules for some hundred operators; PyTorch has two thousand, and knows of most how they are made of the others. One that no
rule takes is read as what it is made of. Whether that is better is for whoever asks to find out.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import fx


@dataclass(frozen=True)
class WrittenOut:
    """Which operators are read as what they are made of."""

    targets: frozenset[str] = frozenset()
    """E.g. `aten.cross.default`."""
    known: frozenset[str] = frozenset()
    """Names of operators, e.g. `softmax`, that stay whole inside others."""

    def pieces(self, node: fx.Node) -> fx.Graph | None:
        """Trace one call of an operator as others; None where it stays whole, or PyTorch has nothing simpler."""
        if str(node.target) not in self.targets:
            return None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                graph = self._traced(node)
            except Exception:
                # a decomposition may refuse what the operator takes: then the operator stays
                return None
        calls = [each for each in graph.nodes if each.op == "call_function"]
        simpler = all(_is_plain(each, node) for each in calls) and all(each.op != "get_attr" for each in graph.nodes)
        return graph if simpler else None

    def _traced(self, node: fx.Node) -> fx.Graph:
        import torch
        from torch import fx
        from torch.fx.experimental.proxy_tensor import make_fx
        from torch.utils import _pytree as pytree

        flat, spec = pytree.tree_flatten((node.args, node.kwargs))
        places = [place for place, value in enumerate(flat) if isinstance(value, fx.Node)]
        values = [flat[place].meta["val"] for place in places]

        def run(*tensors: Any) -> Any:
            filled = list(flat)
            for place, tensor in zip(places, tensors, strict=True):
                filled[place] = tensor
            args, kwargs = pytree.tree_unflatten(filled, spec)
            return node.target(*args, **kwargs)  # type: ignore[operator]

        with torch.no_grad():
            return make_fx(run, decomposition_table=self._table(node))(*values).graph

    def _table(self, node: fx.Node) -> dict[Any, Callable[..., Any]]:
        """List how operators are written, and the whole one too where it would stay so inside of others."""
        every, apart = _ways(self.known)
        own: Any = node.target
        return {**apart, own: every[own]} if own in every else dict(apart)


WHOLE = WrittenOut()
"""Every operator is read as it is."""


@functools.lru_cache(maxsize=4)
def _ways(known: frozenset[str]) -> tuple[dict[Any, Callable[..., Any]], dict[Any, Callable[..., Any]]]:
    """Give how every operator is written as others, and of these only what is taken apart inside of others, once: there are a thousand.

    One that writes in place is read as the one that does not.
    """
    import torch
    from torch._decomp import decomposition_table

    from tools.codegen.trace.own_forms import FORMS

    own = {getattr(getattr(torch.ops.aten, name.split(".")[1]), name.split(".")[2]): form for name, form in FORMS.items()}
    every = {**decomposition_table, **own}
    names = {operator: str(operator).split(".")[1] for operator in every if str(operator).startswith("aten.")}
    return every, {operator: every[operator] for operator, name in names.items() if name not in known and not name.endswith("_")}


def _is_plain(piece: fx.Node, whole: fx.Node) -> bool:
    """Whether a piece is an operator of ATen's, and not the whole again."""
    import operator

    name = str(piece.target)
    if piece.target is operator.getitem:
        return True
    return name.startswith("aten.") and piece.target is not whole.target
