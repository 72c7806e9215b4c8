"""The main job at the command line: a real evaluator, built-in agents, and a language model behind a scripted server."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kernelwright.cli.app import main
from tests.support.scripted_rules import Rule, Scenario
from tests.support.scripted_server import ScriptedServer

OPERATOR = """import torch

ROWS, COLUMNS = 8192, 1024
SMALL_SIZES = [{"ROWS": 3, "COLUMNS": 65}]

def shifted_softmax(x, bias):
    return torch.softmax(x + bias, dim=-1)

def example_inputs():
    return [torch.randn(ROWS, COLUMNS), torch.randn(COLUMNS)]
"""

INVERSE = """import torch

N = 8

def inverse(x):
    return torch.linalg.inv(x)

def example_inputs():
    return [torch.randn(N, N)]
"""

KERNEL = """import torch
import triton
import triton.language as tl
from torch import nn


@triton.jit
def kernel(x_ptr, bias_ptr, out_ptr, n_cols, BLOCK_N: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK_N)
    mask = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=mask, other=-float("inf")) + tl.load(bias_ptr + cols, mask=mask, other=0.0)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n_cols + cols, e / tl.sum(e, axis=0), mask=mask)


class ModelNew(nn.Module):
    def forward(self, x, bias):
        out = torch.empty_like(x)
        kernel[(x.shape[0],)](x, bias, out, x.shape[1], BLOCK_N=triton.next_power_of_2(x.shape[1]))
        return out
"""


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Run a command in a fresh home and return the JSON it printed."""
    (tmp_path / "operator.py").write_text(OPERATOR)
    monkeypatch.setenv("KERNELWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Any:
        monkeypatch.setattr(sys, "argv", ["kernelwright", *arguments, "--json"])
        # typer ends with SystemExit(0), as a command line does
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 0
        return json.loads(capsys.readouterr().out)

    return run


@pytest.mark.slow
def test_an_operator_in_a_verified_kernel_out(command: Any, tmp_path: Path) -> None:
    """With no key, server or GPU: a kernel file, a PASS with its errors, an estimate that says so, and a run that can be inspected."""
    result = command("optimize", "operator.py", "--budget", "2", "--target", "a100", "--embedder", "hashing", "--out", "kernel.py")
    assert result["evaluation"]["verdict"] == "PASS"
    assert result["evaluation"]["timing"] is None
    assert result["tier"] == "estimated"
    assert result["speedup"] > 1
    assert "class ModelNew" in (tmp_path / "kernel.py").read_text()
    trace = command("trace", result["run"])
    assert trace["delivery"]["candidate"] in {line["id"] for line in trace["candidates"]}
    assert [run["run"] for run in command("runs")] == [result["run"]]


def test_what_the_built_in_coder_cannot_do_is_said(command: Any, tmp_path: Path) -> None:
    """Keep the reference, says the end, and names what cannot be generated; what was noted of the file at the start is in the JSON, too."""
    (tmp_path / "inverse.py").write_text(INVERSE.replace("linalg.inv(x)", "linalg.inv(x).log()"))
    result = command("optimize", "inverse.py", "--budget", "2", "--no-memory")
    assert result["kernel"] is None
    assert "Keep the reference" in result["reason"]
    assert "linalg_inv" in result["reason"]
    assert any("NaN" in note for note in result["problem_notes"])


@pytest.mark.slow
def test_a_language_model_writes_fails_repairs_and_delivers(command: Any) -> None:
    """Every role played by a model: a wrong first source is repaired, its numbers swept, delivered, and the calls are in the trace."""
    plan = {
        "kind": "fusion",
        "region": "shifted_softmax",
        "parameters": [],
        "rationale": "one pass",
        "predicted_gain": 2.0,
        "strategies": [],
    }
    wrong = KERNEL.replace("e / tl.sum(e, axis=0)", "e")
    rules = [
        Rule(role="planner", answer=json.dumps({"plans": [plan]}), uses=1),
        Rule(role="planner", answer=json.dumps({"plans": []})),
        Rule(role="coder", answer=f"Here it is.\n```python\n{wrong}```"),
        Rule(role="repairer", answer=f"The sum was missing.\n```python\n{KERNEL}```"),
        Rule(role="profiler", answer=json.dumps({"bottleneck": "dram-bandwidth", "evidence": "It moves little.", "figures": []})),
        Rule(role="reviewer", answer=json.dumps({"concerns": [], "lesson": "Divide by the sum."})),
    ]
    with ScriptedServer(Scenario(rules=rules)) as server:
        words = (
            "--model",
            "scripted",
            "--base-url",
            server.url,
            "--team",
            "full",
            "--role",
            "coder=llm",
            "--role",
            "profiler=llm",
            "--role",
            "reviewer=llm",
            "--budget",
            "4",
            "--no-memory",
        )
        result = command("optimize", "operator.py", *words)
    assert result["evaluation"]["verdict"] == "PASS"
    trace = command("trace", result["run"])
    written = [line for line in trace["candidates"] if line["coder"] == "scripted"]
    assert [(line["repairs"], line["verdict"]) for line in written] == [(0, "WRONG"), (1, "PASS")]
    assert [line["planner"] for line in trace["candidates"] if line not in written] == ["tuner"]
    calls = command("trace", result["run"], "--nodes")["calls"]
    assert {"planner", "coder", "repairer", "reviewer"} <= {call["role"] for call in calls}
    assert trace["spent"]["tokens"] > 0
