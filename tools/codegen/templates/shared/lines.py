"""Lines of emitted text that are not too long."""

from __future__ import annotations

from collections.abc import Sequence


def block(header: str, items: Sequence[str], footer: str, indent: str = "") -> list[str]:
    """Write `header(items)footer` on one line, or one item a line where it is too long."""
    line = f"{indent}{header}({', '.join(items)}){footer}"
    if len(line) <= 110:
        return [line]
    inner = f"{indent}    {', '.join(items)},"
    if len(inner) <= 110:
        return [f"{indent}{header}(", inner[:-1], f"{indent}){footer}"]
    return [f"{indent}{header}(", *(f"{indent}    {item}," for item in items), f"{indent}){footer}"]
