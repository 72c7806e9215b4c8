"""Which policy a user gets who names none, and what records without one mean."""

from __future__ import annotations

import importlib
import inspect
import json
from typing import Any

import pytest

import kernelwright
from graphs.run.settings import RunSettings
from kernelwright.api.explaining import explain
from kernelwright.bench.settings import BenchSettings
from tools.policies import load_policy
from tools.records import DEFAULT_POLICY, PrecisionPolicy


@pytest.mark.parametrize("name", ["commands.optimize", "commands.evaluate", "commands.explain", "commands.bench", "knowledge.worth"])
def test_every_command_judges_by_pytorchs_own_flags(name: str) -> None:
    """Without `--policy` each command that takes one means `default`."""
    module = importlib.import_module(f"kernelwright.cli.{name}")
    defaults = [_default(function) for function in vars(module).values() if inspect.isfunction(function)]

    assert [found for found in defaults if found is not None] == ["default"]


def test_python_judges_by_them_too() -> None:
    """The functions and settings of the Python API have the same default, which is the named policy."""
    assert _default(kernelwright.evaluate) == _default(explain) == RunSettings().policy == DEFAULT_POLICY == load_policy("default")


def test_what_was_stored_without_a_policy_is_exact() -> None:
    """Runs, benches and policies from before there was `default` keep their meaning."""
    assert RunSettings.model_validate_json("{}").policy.name == "exact"
    assert PrecisionPolicy.model_validate_json('{"factor": 2}').name == "exact"
    stored = json.loads(BenchSettings(suite="s", kind="folder", run=RunSettings()).model_dump_json())
    assert BenchSettings.model_validate_json(json.dumps(stored)).run.policy == DEFAULT_POLICY
    del stored["run"]["policy"]
    assert BenchSettings.model_validate_json(json.dumps(stored)).run.policy.name == "exact"


def _default(function: Any) -> Any:
    parameter = inspect.signature(function).parameters.get("policy")
    return parameter.default if parameter and parameter.default is not inspect.Parameter.empty else None
