"""A bench on a Ray cluster of two nodes on this machine, of which one is killed: real Ray, evaluators that judge by text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.ray_bench import killed_bench, write_problems
from tests.support.ray_nodes import SECONDS, Nodes

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Two nodes with processors, beside the head."""
    made = Nodes(tmp_path_factory.mktemp("ray") / "pool.log", **{SECONDS: "0.5"})
    made.add(cpus=2)
    made.add(cpus=2)
    yield made
    made.close()


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four operators."""
    return write_problems(tmp_path_factory.mktemp("bench") / "suite", 4)


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_a_killed_node_costs_no_row_and_nothing_that_was_finished(nodes: Nodes, suite: Path, tmp_path: Path, elsewhere: bool) -> None:
    """Agents here or whole runs as tasks: every row is there once, with where it was judged; no finished evaluation is asked again."""
    found = await killed_bench(nodes, suite, tmp_path, 1, elsewhere=elsewhere, gap_s=(0.1, 1.0))
    assert found.whole
    assert len(found.rows) == 4
    assert {row.status.value for row in found.rows} <= {"kernel", "reference"}, [row.reason for row in found.rows]
    assert found.kills == 1
    assert found.doubled == found.repeated == 0
    assert all(row.places and "here" not in row.places for row in found.rows)
    assert all((tmp_path / "home" / "runs" / row.run / "run.db").is_file() for row in found.rows)
