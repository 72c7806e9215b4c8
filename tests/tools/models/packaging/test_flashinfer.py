"""A delivered package as a data set of FlashInfer-Bench; where that library is installed, its own records read it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.tools.models.packaging.test_package import CONTRACT, KERNEL, Pair
from tests.tools.models.samples import Norm
from tools.guards.contract import Contract, Size, TensorRule
from tools.models.capturing.capture import capture
from tools.models.loading import Workload
from tools.models.packaging.delivered import Delivered
from tools.models.packaging.flashinfer import DATA_SET, can_export, definition, write_data_set
from tools.models.packaging.package import write_package
from tools.models.records import Output

X = torch.linspace(-1.0, 1.0, 96).view(6, 16)


@pytest.fixture(scope="module")
def delivered() -> Delivered:
    """A norm's operator."""
    found = capture(Pair().eval(), [Workload("rows", (X,), {}, 1.0)])
    [norm] = [group for group in found.groups if group.title == "Norm"]
    assert norm.trace is not None
    return Delivered(group=norm, trace=norm.trace, contract=CONTRACT, kernel=KERNEL, evidence=None)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory, delivered: Delivered) -> Path:
    """A package with it."""
    folder = tmp_path_factory.mktemp("exports") / "faster_pair"
    write_package(folder, "Pair", "", [delivered], {})
    return folder


def read(package: Path, part: str) -> dict[str, Any]:
    """Read the only file of a part of the data set."""
    [file] = (package / DATA_SET / part).rglob("*.json*")
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def test_a_definition_has_sizes_inputs_weights_and_a_reference(package: Path) -> None:
    """What may vary is an axis without a value, and an output's size is the input's."""
    found = read(package, "definitions")
    assert found["axes"] == {
        "x_0": {"type": "var"},
        "x_1": {"type": "const", "value": 16},
        "weight_0": {"type": "const", "value": 16},
        "output0_1": {"type": "const", "value": 16},
    }
    assert found["inputs"]["x"] == {"shape": ["x_0", "x_1"], "dtype": "float32"}
    assert found["outputs"] == {"output0": {"shape": ["x_0", "output0_1"], "dtype": "float32"}}


def test_the_reference_takes_the_weights_that_it_is_given(package: Path) -> None:
    """It computes what the module does with them."""
    names: dict[str, Any] = {}
    exec(read(package, "definitions")["reference"], names)
    norm = Norm().eval()
    with torch.no_grad():
        assert torch.allclose(names["run"](X, norm.weight.detach() * 2), norm(X) * 2)


def test_the_solution_runs_the_kernel_with_the_weights_that_it_is_given(package: Path, tmp_path: Path) -> None:
    """Other weights in the next call are seen."""
    (tmp_path / "solved").mkdir()
    for source in read(package, "solutions")["sources"]:
        (tmp_path / "solved" / source["path"]).write_text(source["content"])
    with pytest.MonkeyPatch.context() as patches:
        patches.syspath_prepend(str(tmp_path))
        run = importlib.import_module("solved.main").run
    norm = Norm().eval().requires_grad_(False)
    assert torch.allclose(run(X, norm.weight), norm(X))
    assert torch.allclose(run(X, norm.weight * 3), norm(X) * 3)


def test_the_workload_is_the_captured_shape(package: Path) -> None:
    """A trace without a solution, as the library wants its workloads."""
    found = read(package, "workloads")
    assert found["workload"]["axes"] == {"x_0": 6}
    assert (found["solution"], found["evaluation"]) == (None, None)


def test_a_size_in_terms_of_others_is_a_constraint(delivered: Delivered) -> None:
    """Twice as many rows of another input, in fours."""
    contract = Contract(
        (TensorRule("x", "float32", (Size("any * 4"), 16)),), (TensorRule("weight", "float32", (Size("x.shape[0] * 2"),)),), (), None
    )
    found = definition("norm", "normalisation", Delivered(delivered.group, delivered.trace, contract, KERNEL, None))
    assert found["constraints"] == ["x_0 % 4 == 0", "weight_0 == x_0 * 2"]


def test_an_output_of_a_size_that_no_input_has_fixes_all_sizes(delivered: Delivered) -> None:
    """The library binds sizes by inputs alone."""
    outputs = (Output(shape=("x.shape[0]*2", "16"), dtype="float32"),)
    trace = delivered.trace.model_copy(update={"outputs": outputs})
    found = definition("norm", "normalisation", Delivered(delivered.group, trace, CONTRACT, KERNEL, None))
    assert {axis["type"] for axis in found["axes"].values()} == {"const"}


def test_operators_that_take_indices_are_left_out(delivered: Delivered) -> None:
    """The library would draw them beyond every table."""
    first = delivered.trace.abi.arguments[0].model_copy(update={"dtype": "int64"})
    trace = delivered.trace.model_copy(update={"abi": delivered.trace.abi.model_copy(update={"arguments": (first,)})})
    assert can_export(delivered)
    assert not can_export(Delivered(delivered.group, trace, CONTRACT, KERNEL, None))


@pytest.mark.skipif(importlib.util.find_spec("flashinfer_bench") is None, reason="flashinfer-bench pulls in a GPU's libraries")
def test_the_library_reads_the_data_set_and_builds_the_solution(package: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its own records take every file, its builder imports the solution, and its inputs go through both functions."""
    monkeypatch.setenv("FIB_CACHE_PATH", str(tmp_path))
    bench = importlib.import_module("flashinfer_bench")
    data = bench.TraceSet.from_path(str(package / DATA_SET))
    [name] = data.definitions
    [solution], [workload] = data.solutions[name], data.workloads[name]
    inputs = importlib.import_module("flashinfer_bench.bench.utils").gen_inputs(data.definitions[name], workload.workload, "cpu")
    registry = importlib.import_module("flashinfer_bench.compile").BuilderRegistry.get_instance()
    mine = registry.build(data.definitions[name], solution)(*inputs)
    theirs = registry.build_reference(data.definitions[name])(*inputs)
    assert torch.allclose(mine, theirs, atol=1e-5)


def test_each_captured_shape_is_a_workload(tmp_path: Path) -> None:
    """Where one operator serves several."""
    calls = [Workload("rows", (X,), {}, 1.0), Workload("row", (X[:1],), {}, 1.0)]
    [norm] = [group for group in capture(Pair().eval(), calls).groups if group.title == "Norm"]
    assert norm.trace is not None
    write_data_set(tmp_path / "several", [Delivered(group=norm, trace=norm.trace, contract=CONTRACT, kernel=KERNEL, evidence=None)])
    [file] = (tmp_path / "several" / DATA_SET / "workloads").rglob("*.jsonl")
    found = [json.loads(line)["workload"] for line in file.read_text().splitlines()]
    assert [one["axes"] for one in found] == [{"x_0": len(X)}, {"x_0": 1}]
    assert len({one["uuid"] for one in found}) == 2
