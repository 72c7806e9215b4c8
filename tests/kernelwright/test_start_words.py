"""The words of `optimize` about language, start and prompts: wrong ones are refused in one line."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agents.prompting.frame import read_frame
from kernelwright.cli.app import main
from tools.errors import UserError

OPERATOR = "import torch\n\ndef twice(x):\n    return x * 2\n\ndef example_inputs():\n    return [torch.randn(8, 8)]\n"


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Callable[..., str]:
    """Run `optimize` with words that must be refused; return what it printed on standard error."""
    (tmp_path / "operator.py").write_text(OPERATOR)

    def run(*words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["kernelwright", "optimize", str(tmp_path / "operator.py"), *words])
        monkeypatch.setenv("KERNELWRIGHT_HOME", str(tmp_path / "home"))
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert ended.value.code == 2
        assert not (tmp_path / "home").exists()
        return said.err

    return run


def test_an_unknown_language(refused: Callable[..., str]) -> None:
    """An unknown language lists those there are."""
    assert "triton, cuda" in refused("--language", "fortran")


def test_cuda_without_a_model(refused: Callable[..., str]) -> None:
    """CUDA C++ needs a language model, since the built-in coder writes Triton."""
    assert "--model" in refused("--language", "cuda")


def test_cuda_where_it_cannot_be_judged(refused: Callable[..., str]) -> None:
    """Without a GPU to judge it, CUDA C++ is refused before a run is made, and workers are named as the way out."""
    words = ("--language", "cuda", "--model", "any", "--base-url", "http://127.0.0.1:9/v1", "--model-set", "check=false")
    assert "spool:DIR" in refused(*words, "--devices", "interpreter")


def test_a_start_that_is_no_kernel(refused: Callable[..., str], tmp_path: Path) -> None:
    """A file that is missing, or no candidate, is named."""
    assert "nowhere.py" in refused("--start", str(tmp_path / "nowhere.py"))
    assert "ModelNew" in refused("--start", str(tmp_path / "operator.py"))


def test_lengths_of_prompts() -> None:
    """`ROLE=TOKENS` sets one role's length; another role or no number is refused with the roles there are."""
    frame = read_frame("triton", True, ["coder=9000"])
    assert (frame.context("coder"), frame.context("planner"), frame.scratch) == (9000, 16_000, True)
    for wrong in ("cook=9000", "coder", "coder=much"):
        with pytest.raises(UserError, match="planner, coder, repairer"):
            read_frame("triton", False, [wrong])
