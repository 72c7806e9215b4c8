"""What tuning found, kept from run to run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.errors import MachineError
from tools.tuning import Tuned, TuningCache


def tuned(problem: str = "p", time_us: float = 10.0, sizes: tuple[int, ...] = (1024,), tier: str = "in-process", warps: int = 4) -> Tuned:
    """A find of softmax rows."""
    return Tuned(
        problem=problem, hardware="h200", versions="torch 1, triton 1", work="rows", sizes=sizes, parameters=({"num_warps": warps},),
        time_us=time_us, tier=tier,
    )  # fmt: skip


def recall(folder: Path, problem: str = "p", hardware: str = "h200") -> tuple[Tuned, ...]:
    """Ask as a run on 1024 elements does."""
    return TuningCache(folder).recall(problem, hardware, "torch 1, triton 1", "rows", (1024,))


def test_a_slower_find_replaces_nothing(tmp_path: Path) -> None:
    """Of two finds of one key the faster is kept, in either order."""
    for time_us, warps in ((10.0, 4), (12.0, 8), (9.0, 16)):
        TuningCache(tmp_path).keep(tuned(time_us=time_us, warps=warps))
    assert [one.time_us for one in recall(tmp_path)] == [9.0]


def test_a_measured_time_replaces_an_estimate(tmp_path: Path) -> None:
    """Measured and estimated times are not compared: what came last stands."""
    TuningCache(tmp_path).keep(tuned(time_us=1.0, tier="estimated"))
    TuningCache(tmp_path).keep(tuned(time_us=10.0))
    assert recall(tmp_path)[0].tier == "in-process"


def test_the_same_problem_and_then_the_nearest_sizes(tmp_path: Path) -> None:
    """The problem itself comes first, then the problem with the most similar sizes."""
    for problem, size in (("far", 1 << 20), ("near", 2048), ("p", 1 << 24)):
        TuningCache(tmp_path).keep(tuned(problem, sizes=(size,)))
    assert [one.problem for one in recall(tmp_path)] == ["p", "near"]


def test_other_hardware_knows_nothing(tmp_path: Path) -> None:
    """A find on one device is not recalled on another, and an empty folder is no error."""
    assert recall(tmp_path) == ()
    TuningCache(tmp_path).keep(tuned())
    assert recall(tmp_path, hardware="a100") == ()


def test_a_damaged_cache_says_how_to_mend_it(tmp_path: Path) -> None:
    """A file that is no cache is a MachineError that names it."""
    (tmp_path / "tuned.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(MachineError, match=r"tuned\.db"):
        recall(tmp_path)
