"""Sources are read into trees by many threads at once without an error."""

from __future__ import annotations

import ast
import gc
from concurrent.futures import ThreadPoolExecutor

import pytest

from tools.syntax import parsed

SOURCE = "\n".join(f"def f{number}(x):\n    return [(x + {number}) * (x - {number}) for _ in range({number})]" for number in range(60))


def test_many_threads_may_read_sources_at_once() -> None:
    """Each gets its tree, while the collector runs as often as it can."""
    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        with ThreadPoolExecutor(8) as threads:
            trees = list(threads.map(lambda _: ast.dump(parsed(SOURCE)), range(24)))
    finally:
        gc.set_threshold(*before)
    assert set(trees) == {ast.dump(ast.parse(SOURCE))}


def test_what_is_no_python_is_a_syntax_error() -> None:
    """As `ast.parse` says it."""
    with pytest.raises(SyntaxError):
        parsed("def f(:")
