"""Sources are read into trees by many threads at once without an error."""

from __future__ import annotations

import ast
import contextlib
import gc
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tools.syntax import parsed

SOURCE = "\n".join(f"def f{number}(x):\n    return [(x + {number}) * (x - {number}) for _ in range({number})]" for number in range(60))


class Lingers:
    """Refers to itself, so that the collector ends it, and takes a while to end: another thread gets its turn meanwhile."""

    def __init__(self) -> None:
        self.me = self

    def __del__(self) -> None:
        """Take a while."""
        sum(range(500))


@pytest.fixture
def _restless() -> Iterator[None]:
    """Have the collector run, and threads change, as often as they can."""
    threshold, interval = gc.get_threshold(), sys.getswitchinterval()
    gc.set_threshold(1, 1, 1)
    sys.setswitchinterval(1e-6)
    yield
    gc.set_threshold(*threshold)
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("_restless")
def test_many_threads_may_read_sources_at_once() -> None:
    """Each gets its tree; `ast.parse` alone fails here in one of ten calls with Python 3.11."""

    def read(_: int) -> int:
        Lingers()
        return len(parsed(SOURCE).body)

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(read, range(60))) == {60}


@pytest.mark.usefixtures("_restless")
def test_what_libraries_read_meanwhile_does_no_harm() -> None:
    """Where another thread reads by `ast.parse` itself, ours get their trees all the same."""

    def read(number: int) -> int:
        Lingers()
        if number % 2:
            return len(parsed(SOURCE).body)
        with contextlib.suppress(SystemError):
            ast.parse(SOURCE)
        return 60

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(read, range(120))) == {60}


def test_what_is_no_python_is_a_syntax_error() -> None:
    """As `ast.parse` says it."""
    with pytest.raises(SyntaxError):
        parsed("def f(:")
