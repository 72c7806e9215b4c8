"""Small values that lie otherwise than the tile they meet: reductions of what is too small to be laid by its loads.

Triton 3.6 spreads such a value over a tile before it changes its layout, so that a whole tile goes through shared memory for it, written
by the few lanes that hold different elements.
"""

from __future__ import annotations

import math

from tools.codegen.templates.tile.laid import Laid


def spread_out(laid: Laid) -> int:
    """Count the elements that go through shared memory so in one program."""
    plan, threads = laid.plan, laid.tiling.threads
    b, known = plan.b, dict[int, int]()
    sizes: dict[frozenset[int], int] = {}

    def size(expr: int) -> int:
        leaves = plan.leaves[expr]
        if leaves not in sizes:
            sizes[leaves] = math.prod(laid.lanes.extents[dim] for dim, atoms in laid.atoms.items() if atoms & leaves)
        return sizes[leaves]

    if not any(b.exprs[expr].op == "reduce" and size(b.exprs[expr].args[0]) < threads for expr in plan.reductions):
        return 0

    def laid_by_itself(expr: int) -> int:
        """Tell what is made of a small reduction (1) from what is made of a large one (-1), and of neither (0)."""
        if expr not in known:
            record = b.exprs[expr]
            if record.op == "reduce":
                known[expr] = 1 if size(record.args[0]) < threads else -1
            else:
                found = [laid_by_itself(arg) for arg in record.args]
                known[expr] = min(found) if -1 in found else max(found, default=0)
        return known[expr]

    moved: dict[int, int] = {}
    for expr in plan.needed:
        if b.exprs[expr].op not in ("reduce", "read") and size(expr) >= threads:
            small = [arg for arg in b.exprs[expr].args if size(arg) < threads and laid_by_itself(arg) == 1]
            moved |= {arg: max(moved.get(arg, 0), size(expr)) for arg in small}
    return sum(moved.values())
