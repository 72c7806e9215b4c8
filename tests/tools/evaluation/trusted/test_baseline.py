"""The baseline's gate: what torch.compile has made runs only when nobody else is on the device."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch

from tests.support.makers import problem
from tools.evaluation.processes.worker_pool import COMPILING
from tools.evaluation.processes.zygote_ancestry import clean_environment
from tools.evaluation.trusted.baseline import Gate, NotYetError, cache_folder
from tools.evaluation.wire.calls import CallPlan
from tools.evaluation.wire.jobs.baseline import COMPILER, BaselineJob
from tools.records import PolicyName


def test_a_shut_gate_compiles_and_launches_nothing() -> None:
    """The first call compiles and ends there; once the gate is open the same call runs, and nothing is compiled again."""
    ran, gate = [], Gate("eager")

    def reference(x: torch.Tensor) -> torch.Tensor:
        return x.sin() + 1

    compiled = torch.compile(reference, backend=gate)
    x = torch.ones(4)
    with pytest.raises(NotYetError):
        compiled(x)
    made = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    gate.is_open = True
    ran.append(compiled(x))
    assert torch.equal(ran[0], reference(x))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == made >= 1


def test_a_broken_graph_compiles_the_rest_when_it_runs() -> None:
    """A reference that cannot be compiled whole gives its answer all the same."""
    gate = Gate("eager")

    def reference(x: torch.Tensor) -> torch.Tensor:
        y = x.sin()
        torch._dynamo.graph_break()
        return y + 1

    compiled = torch.compile(reference, backend=gate)
    with pytest.raises(NotYetError):
        compiled(torch.ones(4))
    gate.is_open = True
    assert torch.equal(compiled(torch.ones(4)), torch.ones(4).sin() + 1)


def test_what_is_compiled_is_kept_by_flags() -> None:
    """No reference compiled while cuDNN may round serves for one that may not, nor the other way round."""

    def folder(policy: PolicyName) -> str:
        plan = CallPlan(problem=problem(policy=policy).model_dump_json(), shake=None, calls=())
        return cache_folder(BaselineJob(call_plan=plan, flush_bytes=0, cache="/kept"), "/scratch")

    names: tuple[PolicyName, ...] = ("default", "exact", "tf32")
    assert len({folder(name) for name in names}) == 3
    assert folder("exact") == folder("fp16")
    assert folder("exact").startswith("/kept/")


def test_what_baselines_are_forked_from_has_the_compiler_and_one_thread() -> None:
    """A zygote for baselines has imported Inductor, says so, and has started nothing that a fork would lose."""
    program = (
        "import json, os, sys\nfrom tools.evaluation.trusted.baseline import warm_up\nsaid = warm_up()\n"
        "print(json.dumps([said, 'torch._inductor.compile_fx' in sys.modules, len(os.listdir('/proc/self/task'))]))"
    )
    environment = clean_environment({"CUDA_VISIBLE_DEVICES": ""} | COMPILING)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert json.loads(done.stdout) == [{COMPILER: "imported"}, True, 1]
