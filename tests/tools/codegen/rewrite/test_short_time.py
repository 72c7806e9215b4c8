"""Fourier transforms of short times."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tools.codegen.harness import generated, run_worker, traced_text, write_job
from tools.codegen import emit

SPECTRA = """import torch

BATCH = 2
SAMPLES = 120
WINDOW = 16
HOP = 5
SMALL_SIZES = [{{"BATCH": 1, "SAMPLES": 96, "WINDOW": 12, "HOP": 6}}, {{"BATCH": 3, "SAMPLES": 256, "WINDOW": 32, "HOP": 16}}]


class Model(torch.nn.Module):
    def __init__(self, window, hop):
        super().__init__()
        self.size, self.hop = window, hop
        self.register_buffer("window", torch.hann_window(window))

    def forward(self, x):
        return torch.stft(torch.tanh(x), self.size, {options}, return_complex=True).abs()


def get_inputs():
    return [torch.randn(BATCH, SAMPLES)]


def get_init_inputs():
    return [WINDOW, HOP]
"""
WRITTEN = ["self.hop, window=self.window", "self.hop, window=self.window, normalized=True", "self.hop", "self.hop, center=False"]


def test_short_times_are_windows(tmp_path: Path) -> None:
    """The library is left the transforms alone, with a taper and without; what is before them is one kernel, and all is right."""
    jobs = []
    for options in WRITTEN:
        problem, graph = traced_text(SPECTRA.format(options=options), "spectra")
        assert "stft" not in {node.op for node in graph.nodes}
        schedule = generated(graph, {})
        left = [graph.by_name[name].op for region in schedule.regions if not region.is_generated for name in region.nodes]
        assert left == ["fft_rfft"]
        jobs.append(write_job(tmp_path, f"spectra_{len(jobs)}", problem, emit(problem, graph, schedule).source))
    for result in run_worker("interpreter_worker.py", jobs, interpret=True):
        assert result.get("error", 99.0) <= 1.0, result


@pytest.mark.parametrize("options", ["self.hop, window=self.window, onesided=False", "self.hop, win_length=8"])
def test_other_transforms_stay(options: str) -> None:
    """Both halves of a spectrum, and tapers of another length, are the library's."""
    graph = traced_text(SPECTRA.format(options=options), "spectra")[1]
    assert "stft" in {node.op for node in graph.nodes}
