"""`kernelwright verify` at the command line: claims, their standing, and the exit status."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import kernelwright
from kernelwright.cli.app import main
from tests.support.evidence import forge, real_bundle, timed_elsewhere, wary_pool
from tools.evidence import write_bundle
from tools.evidence.manifest import digest_of
from tools.records import PrecisionPolicy

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="session", autouse=True)
def _closing() -> Iterator[None]:
    yield
    asyncio.run(wary_pool().close())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a real bundle."""
    write_bundle(real_bundle(), tmp_path / "proof")
    return tmp_path / "proof"


@pytest.fixture
def verify(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `kernelwright verify`; return its exit status and what it printed."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["kernelwright", "verify", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        code: Any = ended.value.code
        return int(code or 0), said.out, said.err

    return run


@pytest.mark.slow
def test_an_honest_bundle_is_status_0(verify: Command, folder: Path) -> None:
    """Every claim holds, the kernel was evaluated anew, and the JSON says both."""
    code, out, _ = verify(str(folder), "--json")
    report = json.loads(out)
    assert (code, report["holds"], report["unchecked"]) == (0, True, [])
    assert report["evaluation"]["verdict"] == "PASS"
    assert report["evaluation"]["candidate"] == real_bundle().evaluation.candidate


def test_a_tampered_bundle_is_status_1(verify: Command, folder: Path) -> None:
    """A changed file is named, and the summary says not to rely on the bundle."""
    (folder / "build.log").write_text("nothing to see")
    code, out, _ = verify(str(folder))
    assert code == 1
    assert "build.log" in out
    assert "Do not rely" in out


def test_a_forged_figure_is_status_1(verify: Command, folder: Path) -> None:
    """A figure made better, with fresh hashes, is named with what it should be."""
    forge(folder, "evaluation.json", lambda value: value["evaluation"]["estimate"].update(candidate_us=0.01))
    code, out, _ = verify(str(folder), "--no-run", "--json")
    assert code == 1
    assert [claim["name"] for claim in json.loads(out)["claims"] if claim["standing"] == "fails"] == ["estimate"]


def test_a_bundle_cannot_steer_the_terminal(verify: Command, folder: Path) -> None:
    """Control characters that a stranger wrote into a bundle are not sent to the screen."""
    forge(folder, "evaluation.json", lambda value: value["evaluation"].update(candidate="\x1b[2K\x1b[1Aall holds"))
    code, out, _ = verify(str(folder), "--no-run")
    assert code == 1
    assert "all holds" in out
    assert "\x1b" not in out


def test_what_was_not_run_is_said(verify: Command, folder: Path) -> None:
    """`--no-run` never reads as if the kernel had been judged."""
    code, out, _ = verify(str(folder), "--no-run")
    assert code == 0
    assert "not checked" in out
    assert "The kernel was not run" in " ".join(out.split())


def test_a_digest_to_publish_is_one_line(verify: Command, folder: Path) -> None:
    """`--digest` prints it and nothing else, runs nothing, and of a damaged bundle prints none."""
    code, out, err = verify(str(folder), "--digest")
    assert (code, out, err) == (0, f"{digest_of(folder)}\n", "")
    (folder / "build.log").write_text("nothing to see")
    code, out, err = verify(str(folder), "--digest")
    assert (code, out) == (2, "")
    assert "build.log" in err


def test_a_signature_needs_both_of_its_options(verify: Command, folder: Path) -> None:
    """A signature without a file of those who may sign, or the other way round, is wrong input."""
    for words in (("--signature", "s.sig"), ("--allowed-signers", "signers"), ("--signer", "ada")):
        code, _, err = verify(str(folder), *words)
        assert code == 2
        assert "--allowed-signers" in err


@pytest.mark.parametrize("name", ["nowhere", "empty", "file"])
def test_what_is_no_bundle_is_status_2(verify: Command, tmp_path: Path, name: str) -> None:
    """A missing folder, an empty one and a file are wrong input."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    code, out, err = verify(str(tmp_path / name))
    assert (code, out) == (2, "")
    assert name in err
    assert "--bundle" in err


def test_python_can_verify_too(tmp_path: Path) -> None:
    """`kernelwright.verify` gives the claims as records."""
    write_bundle(timed_elsewhere(), tmp_path / "proof")
    report = kernelwright.verify(tmp_path / "proof", run=False, policy=PrecisionPolicy())
    assert report.failed == ()
    assert [claim.name for claim in report.unchecked] == ["correct here"]
