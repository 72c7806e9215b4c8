"""One cluster for all tests of a file: a head without processors, and a node with three GPUs that it only says it has."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.ray_nodes import CALIBRATION, SECONDS, TITLE, Nodes

H100 = "NVIDIA H100 80GB HBM3"


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """The cluster."""
    variables = {CALIBRATION: "100,101,104.5", TITLE: H100, SECONDS: "0.3"}
    made = Nodes(tmp_path_factory.mktemp("ray") / "pool.log", **variables)
    made.add(cpus=3, gpus=3, kind="H100")
    yield made
    made.close()
