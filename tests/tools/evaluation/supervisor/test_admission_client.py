"""Who asks for a problem's admission, and what it does where a process gives no answer."""

from __future__ import annotations

from typing import Any

import pytest

from tools.evaluation.processes.worker_pool import Finished
from tools.evaluation.supervisor.admission_client import Admissions
from tools.evaluation.wire.jobs.admission import AdmissionJob
from tools.records import Admission, Problem

ASSERTED = "torch.AcceleratorError: CUDA error: device-side assert triggered"
EXAMINED = Admission(calls=3)


class Workers:
    """Processes that end without a word on a device, as after a read beyond an input's end, and answer elsewhere."""

    def __init__(self, *answering: str, device: Any = 0) -> None:
        self.device, self._answering = device, answering
        self.asked: list[str] = []

    def ask(self, _: str, job: bytes, *__: Any, **___: Any) -> Finished:
        """Answer, or not."""
        device = AdmissionJob.model_validate_json(job).device
        self.asked.append(device)
        answer = EXAMINED.model_dump_json().encode() if device in self._answering else b""
        return Finished(answer, ASSERTED, "it ended with status 1")


def admitted(workers: Any, problem: Problem) -> Admission:
    """Ask once."""
    return Admissions(workers).admission(problem, -1)


def test_what_a_device_ends_is_examined_without_it(problem: Problem) -> None:
    """A reference without its clamp reads beyond its input, for which a device ends the process; the CPU says so of that call alone."""
    workers = Workers("cpu")
    assert admitted(workers, problem) == EXAMINED
    assert workers.asked == ["cuda", "cuda", "cpu"]


@pytest.mark.parametrize("device", [0, None], ids=["a GPU", "none"])
def test_what_nobody_answers_is_a_note(problem: Problem, device: Any) -> None:
    """Where no process answers, the note has the last one's words."""
    assert admitted(Workers(device=device), problem).notes == (f"The problem was not examined: {ASSERTED}",)
