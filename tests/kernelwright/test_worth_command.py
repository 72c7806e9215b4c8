"""`kernelwright knowledge worth` as a user gives it: against a live Chroma server, and where runs fail."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelwright.cli.app import main
from tests.support.chroma import chroma_server

OPERATOR = "import torch\n\ndef twice(x):\n    return torch.{name}(x) * 2\n\ndef example_inputs():\n    return [torch.randn(8, 64)]\n"
ROOT = Path(__file__).parents[2]
MEMORY = "learn/knowledge/greedy-learning-builtin-s0-1of1"
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def worth(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """Run the command over two pointwise operators, one of them held out, and return exit status, output and errors."""
    (tmp_path / "suite").mkdir()
    for name in ("sin", "tanh"):
        (tmp_path / "suite" / f"{name}.py").write_text(OPERATOR.format(name=name))
    monkeypatch.setenv("KERNELWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)

    def run(*more: str) -> tuple[int, str, str]:
        words = ["suite", "--held-out", "tanh", "--seeds", "1", "--evaluations", "1", "--embedder", "hashing", "--out", "out"]
        where = ["--target", "h200", *(() if "--evaluator" in more else ("--devices", "interpreter"))]
        monkeypatch.setattr(sys, "argv", ["kernelwright", "knowledge", "worth", *words, *where, *more])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capsys.readouterr()

    return run


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Path]:
    """A spool with a worker that passes every candidate: three benches would start three pools of their own."""
    folder, log = tmp_path / "spool", tmp_path / "pool.log"
    command = [sys.executable, "-m", "tests.support.spool_worker", str(folder), str(log)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL) as worker:
        yield folder
        worker.terminate()


# Chroma leaves the sockets of a closed HTTP client to the garbage collector
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.slow
@pytest.mark.thorough
def test_a_live_server_holds_the_vectors_of_every_memory(worth: Command, spool: Path, tmp_path: Path) -> None:
    """The report compares all three arms, the server has a collection for each memory, and no folder has an index."""
    import chromadb

    with chroma_server(tmp_path / "chroma") as server:
        status, out, said = worth("--server", server, "--json", "--evaluator", f"spool:{spool}")
        client = chromadb.HttpClient(host="127.0.0.1", port=int(server.rpartition(":")[2]))
        held = [collection.count() for collection in client.list_collections()]
    assert status == 0, said
    report = json.loads(out)
    assert (report["learnt_on"], report["groups"][0]["problems"], report["notes"]) == (["sin"], ["tanh"], [])
    assert [arm["arm"] for arm in report["groups"][0]["arms"]] == ["off", "seeds", "learnt"]
    assert any(one["recalled"] for one in report["strategies"])
    # learnt on one problem, the seeds alone, and a copy of what was learnt
    assert len(held) == 3
    assert min(held) < max(held)
    assert not list((tmp_path / "out").rglob("index"))


@pytest.mark.slow
def test_where_a_learning_run_failed_nothing_is_measured(worth: Command, tmp_path: Path) -> None:
    """A damaged memory fails the learning: one line says so, and no held-out run is begun."""
    log = tmp_path / "out" / MEMORY / "log.sqlite3"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"no database" * 1000)
    status, _, said = worth()
    assert status == 2
    assert "1 of 1 runs in out/learn failed, the first (sin) with" in said
    assert not (tmp_path / "out" / "cold").exists()


@pytest.mark.parametrize(
    ("words", "what"), [(("--knowledge", "/nope"), "no knowledge base"), (("--embedder", "/nope"), "no embedding model")]
)
def test_what_cannot_be_used_is_found_before_anything_is_run(worth: Command, tmp_path: Path, words: tuple[str, str], what: str) -> None:
    """A memory or an embedder that is not there costs one line, not the runs that come before it."""
    status, _, said = worth(*words)
    assert (status, what in said) == (2, True)
    assert not (tmp_path / "out").exists()
