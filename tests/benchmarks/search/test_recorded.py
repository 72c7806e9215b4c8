"""What ships in benchmarks/search/landscapes: measured tables, on which the methods are compared with random search."""

from __future__ import annotations

import json
import re
import statistics
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmarks.search.landscape import Landscape, landscape_files, load_landscapes
from benchmarks.search.methods import trial
from graphs.search import METHODS

FILES = landscape_files()
DOCS = Path(__file__).parents[3] / "docs" / "search"
recorded = pytest.mark.skipif(not FILES, reason="no landscape is recorded yet: benchmarks.search.record_landscape writes one on a GPU")
TRIALS = Path(__file__).parents[3] / "docs" / "results" / "search-methods" / "trials.jsonl"
"""Written by `python -m benchmarks.search.methods --budget 32 --seeds 10 --out docs/results/search-methods`."""
AGAIN = ("mean_squared_error", "row_mean")
ADMITS = re.compile(r"does not beat random search", re.IGNORECASE)


def _landscapes() -> list[Landscape]:
    return [one for path in FILES for one in load_landscapes(path)[1]]


@cache
def _trials() -> list[dict[str, Any]]:
    return [json.loads(line) for line in TRIALS.read_text().splitlines()]


def _area(method: str) -> float:
    """Mean area under the curve over problems and seeds, as committed."""
    return statistics.fmean(one["area"] for one in _trials() if one["method"] == method)


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


@recorded
@pytest.mark.parametrize("method", sorted(METHODS))
def test_the_committed_trials_are_of_these_methods(method: str) -> None:
    """A search run again on a shipped table goes as the committed results say; else the benchmark is to be run again."""
    for landscape in _landscapes():
        if landscape.problem in AGAIN:
            old = next(t for t in _trials() if (t["problem"], t["method"], t["seed"]) == (landscape.problem, method, 0))
            assert trial(landscape, method, 0, len(old["curve"]), 2).area == pytest.approx(old["area"], abs=1e-3)


def test_every_method_has_a_page() -> None:
    """docs/search has a page for each method by its name on the command line."""
    assert not [name for name in METHODS if not (DOCS / f"{name}.md").is_file()]
