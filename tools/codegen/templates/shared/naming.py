"""Variables of emitted code: unique readable names, and the scopes in which expressions have them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tools.codegen.ir.graph import Ref
from tools.codegen.ir.value_names import spared
from tools.codegen.templates.device.math import NAMES

RESERVED = {
    "BLOCK", "BLOCK_M", "BLOCK_N", "F", "False", "None", "ROWS", "SPLITS", "True", "UNROLL", "a", "abs", "acc", "anchor", "and", "at", "b",
    "batch", "begin", "block", "block_m", "block_mean", "block_n", "blocks", "chunk", "class", "cols", "count", "def", "del", "delta",
    "else", "end", "exponent", "first", "float", "for", "from", "full", "global", "grid", "group", "group_rows", "half", "halves_kernel",
    "here", "if", "in", "input_", "int", "is", "k", "lag", "lambda", "lanes", "last", "left", "left_tile", "mask", "mask_k", "mask_m",
    "mask_n", "mask_s", "math", "max", "min", "n_blocks", "n_cols", "n_elements", "n_outer", "n_rows", "n_splits", "n_steps", "new_max",
    "nn", "not", "off_m", "off_n", "offs", "or", "out", "outer", "part", "parts", "pass", "pid", "pid_m", "pid_n", "power_of_two",
    "print", "programs", "range", "residue", "return", "right", "right_tile", "row", "row_index", "rows", "self", "share", "small", "split",
    "start", "steps", "sum", "tile", "tiles", "tiles_m", "tiles_n", "tl", "torch", "triton", "with", "yield",
}  # fmt: skip
RESERVED |= {"better", "block_best", "candidate", "halves_exponent", "n_held", "n_wide", "off_k"}
RESERVED |= {f"{word}_{place}" for word in ("at", "in", "n_part") for place in range(8)}
"""Names that templates use themselves, and Python's."""


@dataclass
class Scope:
    """Variables in force at one place of a kernel."""

    lines: list[str]
    indent: str
    parent: Scope | None = None
    names: dict[int, str] = field(default_factory=dict)

    def find(self, expr: int) -> str | None:
        """Look up an expression's variable."""
        if expr in self.names:
            return self.names[expr]
        return self.parent.find(expr) if self.parent else None

    def say(self, line: str) -> None:
        """Add a line."""
        self.lines.append(self.indent + line if line else "")

    def nested(self, lines: list[str] | None = None) -> Scope:
        """Open a block one level deeper."""
        return Scope(self.lines if lines is None else lines, self.indent + "    ", self)


class Names:
    """Unique, readable variable names."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        """Keep clear of `taken`."""
        self.taken = set(RESERVED) | set(NAMES.values()) | set(taken)

    def fresh(self, wish: str) -> str:
        """Give `wish`, or `wish` with a number."""
        name, count = wish, 1
        while name in self.taken:
            count += 1
            name = f"{wish}_{count}"
        self.taken.add(name)
        return name


def access_names(refs: Iterable[Ref], names: Names) -> tuple[str, ...]:
    """Name the tensors of a kernel after the values they hold; one that is read in two ways gets two names."""
    return tuple(names.fresh(value_name(ref)) for ref in refs)


def value_name(ref: Ref) -> str:
    """Name a value after its node, argument or parameter."""
    return spared(ref.name if ref.index == 0 else f"{ref.name}_{ref.index}")
