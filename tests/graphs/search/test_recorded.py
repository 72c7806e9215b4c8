"""What ships in data/landscapes: measured tables, on which the methods are compared with random search."""

from __future__ import annotations

import re
import statistics
from functools import cache
from pathlib import Path

import pytest

from benchmarks.search_methods import trial
from graphs.search import METHODS
from graphs.search.landscape import Landscape, landscape_files, load_landscapes

FILES = landscape_files()
DOCS = Path(__file__).parents[3] / "docs" / "search"
recorded = pytest.mark.skipif(not FILES, reason="data/landscapes holds no table yet: benchmarks.record_landscape writes one on a GPU")
SEEDS, BUDGET = 4, 24
ADMITS = re.compile(r"does not beat random search", re.IGNORECASE)


def _landscapes() -> list[Landscape]:
    return [one for path in FILES for one in load_landscapes(path)[1]]


@cache
def _area(method: str) -> float:
    """Mean area under the curve over problems and seeds."""
    return statistics.fmean(trial(one, method, seed, BUDGET, 2).area for one in _landscapes() for seed in range(SEEDS))


@recorded
def test_every_table_is_measured() -> None:
    """A shipped table says on which device it was measured, and that it was not made up."""
    headers = [load_landscapes(path)[0] for path in FILES]
    assert all(not header.synthetic and header.device and header.versions for header in headers)


@recorded
def test_some_problems_have_something_to_find() -> None:
    """At least half of the problems have a schedule that is faster than the better baseline."""
    landscapes = _landscapes()
    assert sum(one.best_speedup > 1.02 for one in landscapes) >= len(landscapes) / 2


@recorded
@pytest.mark.parametrize("method", sorted(METHODS.keys() - {"random"}))
def test_each_method_beats_random_or_its_page_says_so(method: str) -> None:
    """By the mean area under the curve a method beats random search, or its page admits that it does not beat random search."""
    page = DOCS / f"{method}.md"
    assert _area(method) > _area("random") or ADMITS.search(page.read_text())


def test_every_method_has_a_page() -> None:
    """docs/search has a page for each method by its name on the command line."""
    assert not [name for name in METHODS if not (DOCS / f"{name}.md").is_file()]
