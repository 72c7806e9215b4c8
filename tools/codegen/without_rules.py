"""Operators that no kernel can hold, read as what PyTorch makes them of, where kernels can hold that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tools.codegen.ir.constant_tensors import FILLS
from tools.codegen.ir.graph import Node, OperatorGraph
from tools.codegen.ir.loop import Loop
from tools.codegen.ir.operators.families import CASTS, RECURRENT
from tools.codegen.ir.operators.pointwise_ops import ARITHMETIC, LOGIC
from tools.codegen.ir.views import HOST_VIEWS, VIEWS, is_view
from tools.codegen.lower.positions.view_rules import VIEW_RULES
from tools.codegen.lower.rules import GENERAL_RULES, RULES
from tools.codegen.rewrite.canonicalize import ALIASES, canonicalize
from tools.codegen.rewrite.canonicalize import RULES as REWRITES
from tools.codegen.rewrite.identities import DROPOUTS, IDENTITIES
from tools.codegen.rewrite.rewriter import Rewritten
from tools.codegen.schedule.partition import STANDING_ALONE, initial_schedule
from tools.codegen.schedule.plan import can_generate
from tools.codegen.trace.exports import Exports
from tools.codegen.trace.tracing import trace_reference
from tools.codegen.trace.written_out import WrittenOut
from tools.records import Problem

KNOWN = frozenset({
    *RULES, *GENERAL_RULES, *VIEWS, *HOST_VIEWS, *VIEW_RULES, *FILLS, *ALIASES, *REWRITES.by_operator, *IDENTITIES, *DROPOUTS,
})  # fmt: skip
"""Operators that stay whole inside what others are made of."""
LEFT = frozenset({*STANDING_ALONE, *RECURRENT, "sort", "topk"})
"""Operators whose library kernels are better than what PyTorch would write them as."""
MOST = 16
"""Operators of one reference that are tried."""


def canonical(problem: Problem, *, loops: bool = True, exports: Exports | None = None) -> Rewritten:
    """Trace a reference and bring it into canonical form, what no kernel can hold written out where kernels then hold all of it."""
    trace = partial(trace_reference, problem, loops=loops, exports=exports or Exports(problem))
    whole = canonicalize(trace())
    left = frozenset() if whole.graph.blocked else without_kernels(whole.graph)
    tried = sorted(left)[:MOST]
    if not tried:
        return whole
    every = _written_out(trace, tried)
    if _gains(every, left, tried):
        return every
    best, taken = whole, list[str]()
    for target in tried if len(tried) > 1 else ():
        changed = _written_out(trace, [*taken, target])
        if _gains(changed, left, [*taken, target]):
            best, taken = changed, [*taken, target]
    return best


def without_kernels(graph: OperatorGraph) -> frozenset[str]:
    """Name the operators of a graph that no kernel can hold, of which another form may be better."""
    return frozenset(node.target for node in graph.nodes if _is_candidate(graph, node) and not can_generate(graph, (node.name,)))


def _is_candidate(graph: OperatorGraph, node: Node) -> bool:
    simple = is_view(node) or node.op in LEFT or node.op in ARITHMETIC or node.op in LOGIC or node.op in CASTS
    return not (simple or isinstance(node, Loop) or node.name in graph.effects)


def _written_out(trace: Callable[..., OperatorGraph], targets: Sequence[str]) -> Rewritten:
    return canonicalize(trace(written_out=WrittenOut(frozenset(targets), KNOWN)))


def _gains(changed: Rewritten, left: frozenset[str], targets: Sequence[str]) -> bool:
    """Whether nothing but what was left before is left to the library, and none of the targets."""
    if changed.graph.blocked:
        return False
    after = without_kernels(changed.graph)
    if after <= left - frozenset(targets):
        return True
    # what no kernel holds alone may share one with what is around it
    regions = initial_schedule(changed.graph).regions
    alone = {
        changed.graph.by_name[name].target for region in regions if not can_generate(changed.graph, region.nodes) for name in region.nodes
    }
    return after & alone <= left - frozenset(targets)
