"""The small sizes at which a traced call's kernel is tried: apart where the call takes them so, else tied as the captured ones are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

_LINE = re.compile(r"\nSMALL_SIZES = (.*)\n")
_SHAPES = re.compile(r"\nWORKLOADS = (.*)\n")
_SIZE = re.compile(r"^((?:size|steps)\d+(?:_\d+)?) = (\d+)$", re.MULTILINE)


def with_small_sizes(source: str, *, chosen: bool = True) -> Iterator[str]:
    """Give the text of a problem as it is, with one value for those sizes that are equal in every captured call, and with none chosen.

    A trace does not say which of its sizes hang together where its operators do not ask: keys and values are of one number.
    """
    if chosen:
        yield source
        tied = _tied(source)
        if tied != source:
            yield tied
    yield _LINE.sub("\n", source)


def _tied(source: str) -> str:
    """Write sizes that are equal in every captured call as one."""
    line = _LINE.search(source)
    if line is None:
        return source
    shapes = _SHAPES.search(source)
    written = {name: int(size) for name, size in _SIZE.findall(source)}
    captured = [{**written, **sizes} for sizes in ast.literal_eval(shapes[1]).values()] if shapes else [written]
    small: list[dict[str, int]] = ast.literal_eval(line[1])
    first: dict[tuple[int, ...], str] = {}
    alike = {name: first.setdefault(tuple(sizes[name] for sizes in captured), name) for name in small[0]}
    return source.replace(line[0], f"\nSMALL_SIZES = {[{name: sizes[alike[name]] for name in sizes} for sizes in small]!r}\n")
