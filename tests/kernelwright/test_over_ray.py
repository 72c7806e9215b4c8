"""Commands over a real Ray cluster of two nodes on this machine, with real evaluations in the interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelwright.cli.app import main
from tests.kernelwright.models.test_model import MODEL
from tests.kernelwright.test_worth_command import OPERATOR
from tests.support.ray_nodes import Nodes
from tools.records import Evaluation
from tools.tracing import RunStore

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    """Two nodes with a processor each, beside a head without."""
    made = Nodes(tmp_path_factory.mktemp("ray") / "pool.log")
    made.add(cpus=1)
    made.add(cpus=1)
    yield made
    made.close()


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """Run a command over the cluster from a folder of its own, and return exit status, output and errors."""
    monkeypatch.setenv("KERNELWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for name in ("sin", "tanh"):
        (tmp_path / f"{name}.py").write_text(OPERATOR.format(name=name))

    def command(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["kernelwright", *words, "--evaluator", "ray"])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capsys.readouterr()

    return command


def _places(home: Path) -> set[str]:
    """Where the evaluations of all runs below were judged."""
    found = set[str]()
    for file in home.rglob("run.db"):
        store = RunStore(file.parent)
        found |= {one.place for one in store.all("evaluation", Evaluation).values()}
        store.close()
    return found


def test_a_cluster_without_a_gpu_is_told_of_in_a_line(nodes: Nodes, run: Command) -> None:
    """Where one is asked for, with what is there and what to do; nothing is begun."""
    status, _, said = run("optimize", "sin.py", "--target", "h100")
    assert status == 2
    assert "The Ray cluster has no GPU: it has 2 processors on 3 nodes." in " ".join(said.split())
    assert "--devices interpreter" in " ".join(said.split())
    assert "Traceback" not in said


@pytest.mark.thorough
def test_a_whole_models_operators_are_judged_on_the_cluster(nodes: Nodes, run: Command, tmp_path: Path) -> None:
    """The model is read and proven here; every evaluation names the node where it was judged."""
    (tmp_path / "net.py").write_text(MODEL)
    (tmp_path / "neighbour.py").write_text("WIDTH = 8\n")
    words = ("--budget", "1", "--largest", "5", "--no-memory", "--tune", "0", "--home", "home", "--devices", "interpreter", "--json")
    status, out, said = run("model", "net.py", "--out", "faster", *words)
    assert status == 0, said
    found = json.loads(out)
    assert [(one["name"], one["delivered"]) for one in found["operators"]] == [("scaled", True)]
    assert all(one["error"] <= one["limit"] for one in found["proof"]["outputs"])
    places = _places(tmp_path / "home")
    assert places
    assert all(place.endswith("(interpreter)") for place in places)


@pytest.mark.thorough
def test_what_memory_is_worth_is_measured_with_runs_as_tasks(nodes: Nodes, run: Command, tmp_path: Path) -> None:
    """Learning runs have their agents here, the others are done on nodes; each row names where it was judged."""
    (tmp_path / "suite").mkdir()
    for name in ("sin", "tanh"):
        (tmp_path / f"{name}.py").rename(tmp_path / "suite" / f"{name}.py")
    words = ("--held-out", "tanh", "--seeds", "1", "--evaluations", "1", "--embedder", "hashing", "--target", "h200", "--out", "out")
    status, out, said = run("knowledge", "worth", "suite", *words, "--devices", "interpreter", "--runs-on", "cluster", "--json")
    assert status == 0, said
    report = json.loads(out)
    assert [arm["arm"] for arm in report["groups"][0]["arms"]] == ["off", "seeds", "learnt"]
    rows = [json.loads(line) for file in (tmp_path / "out").glob("*/results-*.jsonl") for line in file.read_text().splitlines()]
    assert len(rows) == 4
    assert all(row["places"] and "here" not in row["places"] for row in rows)


@pytest.mark.thorough
def test_a_job_joins_the_cluster_that_it_was_given(nodes: Nodes, tmp_path: Path) -> None:
    """`ray job submit` starts a command with RAY_ADDRESS: the word `ray` alone is that cluster, not one of its own."""
    (tmp_path / "sin.py").write_text(OPERATOR.format(name="sin"))
    words = ("optimize", "sin.py", "--budget", "1", "--no-memory", "--home", "home", "--evaluator", "ray", "--devices", "interpreter")
    command = [sys.executable, "-m", "kernelwright", *words, "--json"]
    variables = os.environ | {"RAY_ADDRESS": nodes.address, "KERNELWRIGHT_HOME": str(tmp_path / "home")}
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert all(place.endswith("(interpreter)") for place in _places(tmp_path / "home"))
