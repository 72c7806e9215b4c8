"""Builds as tasks of a real Ray cluster: a real kernel, compiled in a sandbox on a node, for a supervisor elsewhere."""

from __future__ import annotations

import os

import pytest

from benchmarks.evaluator.rate import CANDIDATE
from tests.support.ray_nodes import Nodes
from tests.support.spool_worker import small_problem
from tools.cluster.builds import RayBuilds, build_function
from tools.evaluation.processes.child import CancelledError, DeadlineError
from tools.evaluation.trusted.calibration import median_us
from tools.evaluation.wire.jobs.builder import BuildAnswer, BuilderJob
from tools.hardware import load_sheet

pytestmark = [pytest.mark.slow, pytest.mark.thorough, pytest.mark.filterwarnings("ignore")]


def test_a_node_builds_what_another_one_judges(nodes: Nodes) -> None:
    """The answer is that of a builder here; one that takes too long, or is wanted no more, is given up."""
    builds = RayBuilds(build_function())
    job = BuilderJob(abi=small_problem().abi, source=CANDIDATE.format(number=1, warps=4), sheet=load_sheet("h100"))
    text = job.model_dump_json().encode()
    found = BuildAnswer.model_validate_json(builds(text, 120.0, -1).answer)
    assert found.status == "built"
    assert [launch.name for launch in found.launches] == ["softmax_kernel"]
    with pytest.raises(DeadlineError):
        builds(text, 0.001, -1)
    cancel = os.eventfd(1, os.EFD_CLOEXEC)
    try:
        with pytest.raises(CancelledError):
            builds(text, 120.0, cancel)
    finally:
        os.close(cancel)


def test_the_calibration_kernel_takes_a_time() -> None:
    """On the processor, where it is small; by it GPUs of one kind are compared."""
    assert 1 < median_us("cpu") < 1e6
