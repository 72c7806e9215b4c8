"""Bad input at the command line: one clear line, its mend, exit status 2, nothing lost."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.cli.app import main
from tests.kernelwright.conftest import Refused
from tests.support.loop import small_services
from tests.support.scripted_rules import Rule, Scenario
from tests.support.scripted_server import ScriptedServer
from tools.records import Evaluation
from tools.tracing import RunStore

FUNCTION = "import torch\n\ndef twice(x):\n    return {body}\n\ndef example_inputs():\n    return [torch.randn(8, 8)]\n"


def _write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "operator.py"
    path.write_text(text)
    return str(path)


def test_a_missing_file(refused: Refused, tmp_path: Path) -> None:
    """A file that is not there is named."""
    assert "nowhere.py" in refused("optimize", str(tmp_path / "nowhere.py"))


def test_a_syntax_error(refused: Refused, tmp_path: Path) -> None:
    """A syntax error is given with its line."""
    assert "line 2" in refused("optimize", _write(tmp_path, "import torch\ndef broken(:\n"))


def test_no_reference(refused: Refused, tmp_path: Path) -> None:
    """A file without a reference is told what is expected."""
    assert "get_inputs" in refused("optimize", _write(tmp_path, "import torch\n"))


def test_a_problem_that_cannot_be_judged_is_refused_before_anything_is_paid(refused: Refused, tmp_path: Path) -> None:
    """Too large for the interpreter and without small sizes: status 3, what would mend it, no run, and no question to a model."""
    text = FUNCTION.format(body="x * 2").replace("randn(8, 8)", "randn(4096, 4096)") + "\nSMALL_SIZES = []\n"
    with ScriptedServer(Scenario(rules=[Rule(answer="?")])) as server:
        model = ("--model", "scripted", "--base-url", server.url, "--model-set", "check=false", "--devices", "interpreter")
        said = refused("optimize", _write(tmp_path, text), *model, status=3)
        assert not server.requests
    assert "134 MB" in said
    assert all(word in said for word in ("SMALL_SIZES", "GPU", "--evaluator"))
    assert not (tmp_path / "home" / "runs").exists()


def test_inputs_that_raise(refused: Refused, tmp_path: Path) -> None:
    """An exception in example_inputs is named."""
    text = "def twice(x):\n    return x\n\ndef example_inputs():\n    raise ValueError('no data')\n"
    assert "no data" in refused("optimize", _write(tmp_path, text))


def test_a_reference_that_is_not_deterministic(refused: Refused, tmp_path: Path) -> None:
    """A reference that gives two answers to one question cannot be a reference."""
    assert "determin" in refused("optimize", _write(tmp_path, FUNCTION.format(body="x * torch.empty(1).uniform_(generator=GEN)").replace(
        "import torch\n", "import torch\nGEN = torch.Generator()\n"
    )))  # fmt: skip


def test_outputs_that_are_no_tensors(refused: Refused, tmp_path: Path) -> None:
    """A reference that returns a word is told what outputs may be."""
    assert "tensor" in refused("optimize", _write(tmp_path, FUNCTION.format(body="'yes'")))


def test_an_unknown_target(refused: Refused, tmp_path: Path) -> None:
    """An unknown device lists the known ones."""
    assert "h200" in refused("optimize", _write(tmp_path, FUNCTION.format(body="x * 2")), "--target", "abacus")


def test_an_unknown_search_method(refused: Refused, tmp_path: Path) -> None:
    """An unknown search method lists the known ones, and no run is made."""
    assert "greedy" in refused("optimize", _write(tmp_path, FUNCTION.format(body="x * 2")), "--search", "psychic")
    assert not (tmp_path / "home").exists()


def test_a_server_that_is_down(refused: Refused, tmp_path: Path) -> None:
    """A server nobody answers at is named, and the run that met it is kept."""
    said = refused("optimize", _write(tmp_path, FUNCTION.format(body="x * 2")), "--model", "any", "--base-url", "http://127.0.0.1:9/v1")
    assert "http://127.0.0.1:9/v1" in said


def test_a_hosted_model_without_a_key(refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hosted model without a key names the variable to set."""
    for name in ("OPENAI_API_KEY", "KERNELWRIGHT_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    assert "OPENAI_API_KEY" in refused("optimize", _write(tmp_path, FUNCTION.format(body="x * 2")), "--model", "gpt-5")


def test_a_key_that_the_server_refuses(refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused key names the variable it came from, and never shows the key."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-wrong")
    with ScriptedServer(Scenario(key="sk-right")) as server:
        text = _write(tmp_path, FUNCTION.format(body="x * 2"))
        said = refused("optimize", text, "--model", "scripted", "--base-url", server.url)
    assert "OPENAI_API_KEY" in said
    assert "sk-wrong" not in said


def test_a_model_the_server_does_not_have(refused: Refused, tmp_path: Path) -> None:
    """A wrong model name lists those that the server has."""
    missing = Rule(status=404, message="no such model", code="model_not_found")
    with ScriptedServer(Scenario(rules=[missing], models=["the-right-one"])) as server:
        text = _write(tmp_path, FUNCTION.format(body="x * 2"))
        said = refused("optimize", text, "--model", "a-wrong-one", "--base-url", server.url)
    assert "the-right-one" in said


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """On a disk with no space left a run ends with one line that says so."""
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", str(small)], check=False, capture_output=True).returncode:
        pytest.skip("needs root to mount a small file system")
    try:
        text = _write(tmp_path, FUNCTION.format(body="x * 2"))
        monkeypatch.setattr(sys, "argv", ["kernelwright", "optimize", text, "--home", str(small)])
        (small / "filler").write_bytes(b"0" * 400_000)
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        assert "space" in capsys.readouterr().err
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_an_unwritable_home(refused: Refused, tmp_path: Path) -> None:
    """A home that is a file cannot hold runs."""
    (tmp_path / "file").write_text("")
    assert "--home" in refused("optimize", _write(tmp_path, FUNCTION.format(body="x * 2")), "--home", str(tmp_path / "file"))


def test_an_unknown_run(refused: Refused) -> None:
    """A run that is not there points to the list of runs."""
    assert "kernelwright runs" in refused("trace", "nothing")


def test_a_run_that_cannot_be_read_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`runs` lists the others, and says in a line each which is damaged or of a newer schema."""
    small_services(tmp_path / "runs" / "whole").store.close()
    newer = small_services(tmp_path / "runs" / "newer").store
    newer.set_meta("schema", "9")
    newer.close()
    (tmp_path / "runs" / "bad").mkdir()
    (tmp_path / "runs" / "bad" / "run.db").write_bytes(b"garbage" * 1000)
    monkeypatch.setattr(sys, "argv", ["kernelwright", "runs", "--json", "--home", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    assert ended.value.code == 0
    assert [one["run"] for one in json.loads(said.out)] == ["whole"]
    lines = sorted(said.err.splitlines())
    assert [line.partition(".")[0] for line in lines] == ["not listed: bad", "not listed: newer"]
    assert "damaged" in lines[0]
    assert "schema 9" in lines[1]


def test_runs_are_listed_by_when_they_were_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The newest first, whichever was written to or looked at last."""
    for name, begun in (("newer", 2000.0), ("older", 1000.0)):
        store = small_services(tmp_path / "runs" / name).store
        store.set_meta("created", str(begun))
        store.close()
    monkeypatch.setattr(sys, "argv", ["kernelwright", "runs", "--json", "--home", str(tmp_path)])
    with pytest.raises(SystemExit):
        main()
    assert [one["run"] for one in json.loads(capsys.readouterr().out)] == ["newer", "older"]


def test_a_corrupt_checkpoint(refused: Refused, tmp_path: Path) -> None:
    """A damaged checkpoint file is named with its mend, and nothing evaluated is lost."""
    folder = tmp_path / "home" / "runs" / "exp-1"
    folder.parent.mkdir(parents=True)
    store = small_services(folder).store
    store.put("evaluation", "key", Evaluation(candidate="c", verdict="WRONG"))
    store.close()
    (folder / "checkpoints.db").write_bytes(b"garbage" * 1000)
    said = refused("resume", "exp-1")
    assert "checkpoints.db" in said
    assert "resume" in said
    assert RunStore(folder).get("evaluation", "key", Evaluation) is not None


def test_a_corrupt_knowledge_base(refused: Refused, tmp_path: Path) -> None:
    """A damaged log of strategies is named."""
    folder = tmp_path / "home" / "knowledge"
    folder.mkdir(parents=True)
    (folder / "log.sqlite3").write_bytes(b"garbage" * 1000)
    assert str(folder) in refused("knowledge", "list")


@pytest.mark.parametrize(("out", "said"), [("nofolder/kernel.py", "does not exist"), (".", "is a folder")])
def test_a_kernel_that_could_not_be_written(refused: Refused, tmp_path: Path, out: str, said: str) -> None:
    """A wrong --out is refused before the work, and no run is begun."""
    assert said in refused("optimize", _write(tmp_path, FUNCTION.format(body="x * 2")), "--out", str(tmp_path / out))
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("name", ["*", "/tmp/elsewhere", "../runs", "[a-z]"])
def test_a_run_is_a_name_and_no_pattern(refused: Refused, tmp_path: Path, name: str) -> None:
    """A path or a star in the place of a run's name is no run, though there is one."""
    small_services(tmp_path / "home" / "runs" / "exp-1").store.close()
    assert "There is no run" in refused("trace", name)


def test_two_views_of_a_run(refused: Refused) -> None:
    """A trace shows one view; a second one is not passed over in silence."""
    assert "views of a run" in refused("trace", "any", "--nodes", "--costs")


def test_a_gpu_that_is_not_there(refused: Refused, tmp_path: Path) -> None:
    """A number no GPU has is told what may be given instead."""
    said = refused("optimize", _write(tmp_path, FUNCTION.format(body="x * 2")), "--devices", "97")
    assert "no GPU 97" in said
    assert "interpreter" in said or "Choose among: 0" in said


def test_lessons_by_a_model_without_a_key(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    """`knowledge learn --model` looks for the key before it goes over anything, also where there is nothing to word."""
    for name in ("OPENAI_API_KEY", "KERNELWRIGHT_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    assert "OPENAI_API_KEY" in refused("knowledge", "learn", "--model", "gpt-5")


def test_an_export_that_is_not_there(refused: Refused, tmp_path: Path) -> None:
    """A missing file is said once, in words."""
    said = refused("knowledge", "import", str(tmp_path / "none.jsonl"))
    assert "none.jsonl cannot be read: No such file or directory." in said
    assert "Errno" not in said
