"""Memory's vectors on a Chroma server, as `optimize`, `resume` and `bench` name it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from graphs.run.assembly import open_run, start_run
from graphs.run.settings import RunSettings
from kernelwright.bench.settings import BenchSettings
from kernelwright.cli.app import main
from kernelwright.cli.shared.knowledge_store import reached_server, ready_embedder
from knowledge.log.event_log import EventKind, EventLog
from tests.support.chroma import chroma_server
from tools.problems import load_problem
from tools.records import Budget

DOWN = "http://127.0.0.1:9"
OPERATOR = "import torch\n\ndef inverse(x):\n    return torch.linalg.inv(x)\n\ndef example_inputs():\n    return [torch.randn(8, 8)]\n"
Command = Callable[..., tuple[int, str]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    """Run `kernelwright …` in a fresh home beside one operator; return its exit status and what it said on standard error."""
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "inverse.py").write_text(OPERATOR)
    monkeypatch.setenv("KERNELWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["kernelwright", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), capsys.readouterr().err

    return run


@pytest.fixture
def begun(tmp_path: Path) -> str:
    """Name of a run that was begun with a server that is down now, and got nowhere."""
    home = tmp_path / "home"
    (tmp_path / "operator.py").write_text(OPERATOR)
    settings = RunSettings(target="h200", embedder="hashing", chroma_server=DOWN, budget=Budget(evaluations=1))
    with closing(start_run(load_problem(tmp_path / "operator.py"), settings, home, "begun")):
        return "begun"


class Page(BaseHTTPRequestHandler):
    """Answers every question with a page of HTML."""

    def do_GET(self) -> None:
        """Answer."""
        self.send_error(404)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Say nothing on standard error."""


@pytest.fixture
def other_program() -> Iterator[str]:
    """A web server that is none of Chroma's."""
    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("words", [("optimize", "suite/inverse.py"), ("bench", "suite", "--memory", "off,learning", "--out", "out")])
def test_a_server_that_is_down_ends_the_command_before_anything_is_begun(command: Command, tmp_path: Path, words: tuple[str, ...]) -> None:
    """One line names the server, the next says how to start it or do without; no run and no results are left."""
    status, said = command(*words, "--chroma-server", DOWN)
    assert status == 2
    what, mend = said.splitlines()
    assert what.startswith(f"kernelwright: The Chroma server at {DOWN} does not answer")
    assert "chroma run --host 127.0.0.1 --port 9" in mend
    assert not (tmp_path / "home").exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("words", [("optimize", "suite/inverse.py"), ("bench", "suite", "--memory", "off,learning", "--out", "out")])
def test_an_embedder_that_is_not_there_ends_the_command_before_anything_is_begun(
    command: Command, tmp_path: Path, words: tuple[str, ...]
) -> None:
    """No device time is spent on baselines first; a run without memory asks for none."""
    status, said = command(*words, "--embedder", "/no/such/model")
    assert status == 2
    assert said.startswith("kernelwright: There is no embedding model at /no/such/model.")
    assert not (tmp_path / "home").exists()
    assert not (tmp_path / "out").exists()
    assert ready_embedder("/no/such/model", memory=False) == "/no/such/model"


def test_the_environment_names_the_server_too(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """KERNELWRIGHT_CHROMA_SERVER counts for `optimize` as it does for `knowledge search`."""
    monkeypatch.setenv("KERNELWRIGHT_CHROMA_SERVER", DOWN)
    for words in (("optimize", "suite/inverse.py"), ("knowledge", "search", "softmax", "--embedder", "hashing")):
        status, said = command(*words)
        assert (status, "does not answer" in said) == (2, True)


def test_without_memory_nobody_asks_the_server() -> None:
    """A run that neither recalls nor learns does not need it."""
    assert reached_server(DOWN, memory=False) == ""


def test_another_program_at_the_address_is_one_line(command: Command, other_program: str) -> None:
    """Its page of HTML is not printed."""
    status, said = command("optimize", "suite/inverse.py", "--chroma-server", other_program)
    assert status == 2
    assert "another program answers there" in said
    assert len(said.splitlines()) == 2


@pytest.mark.slow
def test_resume_keeps_the_server_unless_another_is_named(command: Command, begun: str, tmp_path: Path) -> None:
    """A run's own server is down: resume says so and changes nothing; with "" it goes on with the index in the folder."""
    status, said = command("resume", begun)
    assert (status, f"{DOWN} does not answer" in said) == (2, True)
    assert command("resume", begun, "--chroma-server", "")[0] == 0
    with closing(open_run(tmp_path / "home", begun)) as store:
        assert RunSettings.model_validate_json(store.meta("settings")).chroma_server == ""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A live Chroma server."""
    with chroma_server(tmp_path_factory.mktemp("chroma")) as address:
        yield address


# Chroma leaves the sockets of a closed HTTP client to the garbage collector
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.slow
def test_a_run_keeps_its_vectors_on_the_server(command: Command, server: str, tmp_path: Path) -> None:
    """The log lies in the home with what was recalled, the index does not."""
    words = ("--budget", "1", "--embedder", "hashing", "--chroma-server", server)
    assert command("optimize", "suite/inverse.py", *words)[0] == 0
    assert command("knowledge", "search", "inverse", "--embedder", "hashing", "--chroma-server", server)[0] == 0
    knowledge = tmp_path / "home" / "knowledge"
    with closing(EventLog(knowledge / "log.sqlite3")) as log:
        assert log.read(kinds=(EventKind.RECALL,))
    assert not (knowledge / "index").exists()


# Chroma leaves the sockets of a closed HTTP client to the garbage collector
@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.slow
def test_homes_that_name_one_share_learn_from_one_another(
    command: Command, server: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What a run taught one home another recalls; the run says who is there; a name alone, or a wrong one, ends the command."""
    words = ("--embedder", "hashing", "--chroma-server", server)
    status, said = command("optimize", "suite/inverse.py", "--budget", "1", *words, "--share", "team")
    assert (status, "memory is shared as team, which begins with this machine" in said) == (0, True)
    monkeypatch.setenv("KERNELWRIGHT_HOME", str(tmp_path / "other"))
    monkeypatch.setenv("KERNELWRIGHT_SHARE", "team")
    assert command("knowledge", "doctor", *words)[0] == 0
    assert command("knowledge", "doctor", *words, "--share", "two words")[0] == 2
    status, said = command("knowledge", "doctor", "--embedder", "hashing")
    assert (status, "cannot be shared as team without a Chroma server" in said) == (2, True)
    here, there = (EventLog(tmp_path / home / "knowledge" / "log.sqlite3") for home in ("home", "other"))
    with closing(here), closing(there):
        assert [e.key for e in there.read(kinds=(EventKind.RUN,))] == [e.key for e in here.read(kinds=(EventKind.RUN,))] != []


def test_where_the_vectors_lie_does_not_make_another_bench() -> None:
    """Rows are put together whether a shard used a server or not; the id of benches that are under way stays."""
    here = BenchSettings(suite="s", kind="folder", run=RunSettings())
    there = here.model_copy(update={"run": RunSettings(chroma_server=DOWN)})
    other = here.model_copy(update={"run": RunSettings(repairs=1)})
    assert (here.id, here.differences(there)) == (there.id, [])
    assert here.id != other.id
