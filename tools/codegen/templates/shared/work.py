"""What the launches of pointwise chains and poolings do, and what memory-bound kernels move and work."""

from __future__ import annotations

from collections.abc import Iterable

from tools.codegen.ir.expr import Fold
from tools.codegen.ir.kernel import Kernel
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.layout_cache import kept
from tools.records import ITEM_BYTES

WARP = 32
REGISTER_BYTES = 4
WIDEST = 16
"""Bytes of the widest access of a thread."""
LINE = 128
"""Bytes of a line of the L1."""
SECTOR = 32
"""Bytes that move between L1 and L2 at least."""
DIVISION = 24.0
"""Instructions by which a lane takes its number apart into one dimension more, of a size that is read at run time: counted in the machine
code of sm_90."""
FIXED_DIVISION = 6.0
"""The same of a size that is compiled in, which is a multiplication and a shift; an assumption."""
OVERHEAD = 4.0
"""Instructions of a lane for the address and the mask of one access; an assumption."""
SHORT = 1.0
"""Instructions by which an element of fewer than 32 bits becomes one of 32, or is made of one: counted, of sm_90."""
SLOW_OPS = {
    "exp": 10, "exp_fast": 5, "log": 25, "log1p": 40, "log1p_unit": 11, "expm1": 15, "sigmoid": 12, "tanh": 22, "erf": 28, "div": 8,
    "sqrt": 13, "rsqrt": 4, "pow": 130, "sin": 40, "cos": 40, "atan": 35, "round": 6, "floor": 3, "ceil": 3, "scan": 20,
    "mish": 19, "lgamma": 105, "digamma": 86, "i0e": 60, "i1e": 66,
}  # fmt: skip
"""Instructions behind one such operation of numbers of 32 bits; others count 1. Counted in the machine code of 16 elements a thread less
that of 8 (sm_90, Triton 3.6, 2026-11-27), but for a scan.

Of a square root, which is a call where the result is denormal, it is what runs. A sine is 78 there, of which it runs half: two rotary
embeddings that took 249 and 467 µs on an H100 (2026-11-26; rotary_axial and rotary_complex of the wild suite) ran 220 and 206 instructions
an element, of which 40 and 41 are left for each.
"""
INSTRUCTION_BYTES = 16
"""Bytes of an instruction on sm_90."""
CODE_BYTES = 40e3
"""What of a program's code runs at full rate: with 8 and 32 elements a thread two rotary embeddings, whose sines are 2,000 bytes each, took
249 and 904 µs, 467 and 1285 µs (an H100, 2026-11-26; rotary_axial and rotary_complex of the wild suite). 75 kB of gamma functions took
36 µs for what can be issued in 17 (an H200, 2026-11-27)."""
COMBINING = {Fold.LOG_SUM: 22.0}
"""Instructions by which two parts of a scan become one, where it is more than one operation: an exponential and a polynomial."""


def item(access: Access) -> int:
    """Bytes of one element."""
    return ITEM_BYTES[access.meta.dtype]


def converted(access: Access) -> float:
    """Instructions by which an element is made what is computed with, or what is stored."""
    return SHORT if item(access) < REGISTER_BYTES else 0.0


def nbytes_of(access: Access) -> int:
    """Bytes of a tensor at the sizes as written."""
    return access.meta.numel * item(access)


@kept
def ops_of(kernel: Kernel) -> float:
    """Instructions an element, by the operations of a region; what is made of single numbers is made once for many."""
    exprs = (kernel.builder.exprs[place] for place in emitted(kernel))
    return work_of(expr.op for expr in exprs if expr.atoms or expr.reduces())


def work_of(ops: Iterable[str]) -> float:
    """Instructions behind operations."""
    free = ("load", "const", "size", "argument", "index")
    return sum(SLOW_OPS.get(op, 1) for op in ops if op not in free)


@kept
def emitted(kernel: Kernel) -> tuple[int, ...]:
    """Number the operations that an output needs: the positions of a maximum that nobody reads are not computed."""
    return tuple(sorted(kernel.builder.behind(output.expr for output in kernel.outputs)))


def crowding(nbytes: float) -> float:
    """Say how much longer instructions take where a program has so many bytes of them that the cache of instructions does not hold them."""
    return max(1.0, nbytes / CODE_BYTES)


def divisions(groups: tuple[tuple[int, ...], ...], tiled: bool) -> float:
    """Instructions by which a lane takes its number apart."""
    return 8.0 * max(0, len(groups) - (2 if tiled else 1))


def share_of_loads(moved: float, reads: list[Access]) -> float:
    """All traffic over what loads bring: stores wait for nothing, so loads in flight carry their part too."""
    loaded = sum(nbytes_of(a) for a in reads)
    return moved / loaded if loaded else 1.0
