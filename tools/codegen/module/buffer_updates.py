"""The text of writes to a module's buffers, gathered into one call of each kind at the end of forward.

Batch norm in training mode leaves three small writes for each layer: two running statistics and a counter. A launch each costs more
than what they write, so those that nobody reads later in the same call are made together by torch's own calls for lists of tensors.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from tools.codegen.ir.graph import Node, Ref

LONGEST = 110
"""Characters of a line."""


def written_together(nodes: list[Node], name: Callable[[Ref], str]) -> list[str]:
    """Write deferred updates: one call for all copies, one for all additions of the same number."""
    groups: defaultdict[tuple[str, int], list[Node]] = defaultdict(list)
    for node in nodes:
        groups[node.op, 0 if node.op == "copy_" else node.args[1]].append(node)
    lines: list[str] = []
    for (op, number), members in groups.items():
        buffers = [name(node.args[0]) for node in members]
        values = [name(node.args[1]) for node in members] if op == "copy_" else []
        if len(members) == 1:
            lines.append(f"{buffers[0]}.{op}({values[0] if values else number})")
        else:
            rest = _list(values) if values else [str(number)]
            lines += _call(f"torch._foreach_{op}", _list(buffers), rest)
    return lines


def _call(function: str, first: list[str], second: list[str]) -> list[str]:
    """Write a call of two arguments, each of one line or several."""
    if len(first) == len(second) == 1 and len(function) + len(first[0]) + len(second[0]) + 4 <= LONGEST:
        return [f"{function}({first[0]}, {second[0]})"]
    indented = ["    " + line for part in (first, second) for line in (*part[:-1], part[-1] + ",")]
    return [f"{function}(", *indented, ")"]


def _list(items: list[str]) -> list[str]:
    """Write a list, on one line or with an item a line."""
    line = f"[{', '.join(items)}]"
    return [line] if len(line) + 5 <= LONGEST else ["[", *(f"    {item}," for item in items), "]"]
