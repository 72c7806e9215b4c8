"""The search tree as a picture: steps to the right, a dot for each candidate, linked to its page."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from markupsafe import Markup, escape

from kernelwright.ui.tree import SIGNS, WORDS, Branch

STEP_X, LEFT = 118, 16
DOT = 7
TALLEST = 640
"""Of the picture; more candidates stand closer."""
NARROWEST, WIDEST = 360, 1140


def drawn_tree(tree: Sequence[Branch], run: str) -> Markup:
    """Draw the reference at the left and what came of it to the right; empty without a candidate."""
    if not tree:
        return Markup("")
    rows = _rows(tree)
    count, depth = max(rows) + 1, max(one.depth for one in tree) + 1
    gap = min(26.0, max(3.0, TALLEST / count))
    step = min(STEP_X, (WIDEST - 2 * LEFT - 60) / depth)
    wide, tall = max(NARROWEST, round(2 * LEFT + depth * step + 60)), round(count * gap + 16)
    place = {one.line["id"]: (LEFT + (one.depth + 1) * step, 8 + (row + 0.5) * gap) for one, row in zip(tree, rows, strict=True)}
    root = (float(LEFT), 8 + (min(rows) + max(rows) + 1) / 2 * gap)
    dot = min(DOT, gap / 2 - 0.5)
    parts = [_edge(place.get(one.line["parent"], root), place[one.line["id"]], one.mark) for one in tree]
    parts.append(f'<circle class="root" cx="{root[0]:.1f}" cy="{root[1]:.1f}" r="6"><title>the reference</title></circle>')
    parts += [_dot(one, place[one.line["id"]], dot, f"/runs/{quote(run)}/candidates", named=gap >= 14) for one in tree]
    frame = f'viewBox="0 0 {wide} {tall}" width="{wide}" height="{tall}"'
    return Markup(f'<svg class="drawn" {frame} role="group" aria-label="Search tree">{"".join(parts)}</svg>')  # noqa: S704 - escaped below


def _rows(tree: Sequence[Branch]) -> list[float]:
    """The row of each: leaves stand below one another, whoever has children in the middle of them."""
    rows, below = [0.0] * len(tree), [(-1, 0.0, 0.0)] * len(tree)
    leaf = 0
    waiting: list[int] = []
    for at, one in enumerate(tree):
        waiting = [other for other in waiting if tree[other].depth < one.depth] + [at]
        if at + 1 == len(tree) or tree[at + 1].depth <= one.depth:
            for other in waiting:
                first = below[other][1] if below[other][0] >= 0 else float(leaf)
                below[other] = (leaf, first, float(leaf))
            leaf += 1
    for at, (_, first, last) in enumerate(below):
        rows[at] = (first + last) / 2
    return rows


def _edge(start: tuple[float, float], end: tuple[float, float], mark: str) -> str:
    (x, y), (u, v) = start, end
    middle = (x + u) / 2
    return f'<path class="edge {mark}" d="M{x:.1f},{y:.1f}C{middle:.1f},{y:.1f} {middle:.1f},{v:.1f} {u:.1f},{v:.1f}"/>'


def _dot(one: Branch, at: tuple[float, float], size: float, folder: str, *, named: bool) -> str:
    line = one.line
    gain = f"{line['speedup']:.2f}x" if line["speedup"] else ""
    figure = f", {gain} ({line['tier']})" if gain else ""
    name = quote(line["id"])
    said = escape(f"candidate {line['number']}, {line['id'][:6]}: {WORDS[one.mark]}{figure}")
    x, y = at
    label = f'<text x="{x + size + 4:.1f}" y="{y + 4:.1f}">{gain or SIGNS[one.mark]}</text>' if named else ""
    circle = f'<circle class="{one.mark} shade{one.shade}" cx="{x:.1f}" cy="{y:.1f}" r="{size:.1f}"><title>{said}</title></circle>'
    return f'<a href="{folder}/{name}" aria-label="{said}">{circle}{label}</a>'
