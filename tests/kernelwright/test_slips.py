"""Slips of the keys: refused at once, with the nearest name that there is."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from kernelwright.cli.shared.guarded import guarded, stopped_by_sigterm
from tests.kernelwright.conftest import Refused
from tools.nearest import nearest

SOFTMAX = "data/operators/softmax.py"

SLIPS = {
    "a file": (["optimize", "data/operators/sofmax.py"], "softmax.py"),
    "a kernel": (["evaluate", SOFTMAX, "data/operators/gelu_.py"], "There is no file"),
    "a suite": (["bench", "data/operator"], "'data/operators'"),
    "a device": (["optimize", SOFTMAX, "--target", "h2000"], "'h200'"),
    "a search": (["optimize", SOFTMAX, "--search", "greddy"], "'greedy'"),
    "a policy": (["explain", SOFTMAX, "--policy", "exat"], "'exact'"),
    "baselines": (["optimize", SOFTMAX, "--baselines", "default,exat"], "'exact'"),
    "GPUs": (["optimize", SOFTMAX, "--devices", "first"], "names no devices"),
    "an evaluator": (["optimize", SOFTMAX, "--evaluator", "spol:x"], "spool:DIR"),
    "a run": (["resume", "sofmax-2026"], "kernelwright runs"),
    "a function": (["optimize", SOFTMAX, "--entry", "sofmax"], "'sofmax'"),
    "a place": (["optimize", SOFTMAX, "--out", "/proc/kernel.py"], "/proc"),
    "a bundle's place": (["evaluate", SOFTMAX, SOFTMAX, "--bundle", "/proc/evidence"], "/proc"),
    "minutes": (["optimize", SOFTMAX, "--minutes", "inf"], "--minutes inf"),
    "a tolerance": (["optimize", SOFTMAX, "--tolerance", "nan"], "--tolerance"),
    "too many minutes": (["optimize", SOFTMAX, "--minutes", "1e300"], "--minutes 1e+300"),
    "a time of a bench": (["bench", "data/operators", "--stop-after", "inf"], "--stop-after inf"),
    "an option": (["optimize", SOFTMAX, "--targt", "h200"], "--target"),
    "a command": (["optimise", SOFTMAX], "optimize"),
}


@pytest.mark.parametrize("command", ["optimize", "bench", "model", "fork"])
@pytest.mark.parametrize("option", ["--budget", "--evaluations"])
def test_evaluations_go_by_both_their_names(refused: Refused, command: str, option: str) -> None:
    """What one command calls them no other refuses: it is their number that is wrong."""
    said = refused(command, "data/operators/nowhere.py", *(["--out", "nowhere"] if command == "model" else []), option, "-1")
    assert "--budget" in said
    assert "greater than or equal to 0" in said


@pytest.mark.parametrize(("words", "said"), SLIPS.values(), ids=SLIPS)
def test_a_slip_is_refused_with_what_there_is(refused: Refused, words: list[str], said: str) -> None:
    """What is not there is named, and so is what would be right; exit status 2."""
    assert said in refused(*words)


def test_a_slip_costs_no_heavy_import() -> None:
    """Whatever is only misspelt is refused before torch, the agents or the graphs are imported: in a fraction of a second."""
    program = (
        "import sys\nfrom kernelwright.cli.app import main\n"
        "for words in " + repr([words for words, _ in SLIPS.values()]) + ":\n"
        "    sys.argv = ['kernelwright', *words]\n"
        "    try: main()\n"
        "    except SystemExit as ended: assert ended.code == 2, words\n"
        "    heavy = {'torch', 'numpy', 'agents.team', 'graphs.run', 'langgraph', 'tools.evaluation'} & set(sys.modules)\n"
        "    assert not heavy, (words, heavy)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_nothing_is_guessed_of_a_strange_name() -> None:
    """A name like no other is not explained by one."""
    assert nearest("abacus", ["h100", "h200"]) == ""


def test_an_existing_file_may_be_written_over(tmp_path: Path) -> None:
    """Looking whether a file can be written changes nothing in it."""
    from tools.places import demand_file

    kernel = tmp_path / "kernel.py"
    kernel.write_text("mine")
    demand_file(kernel)
    assert kernel.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [kernel]


def test_sigterm_is_what_ctrl_c_is() -> None:
    """A command that is asked to end by SIGTERM ends as by Ctrl-C, and the signal means what it meant afterwards."""
    with pytest.raises(KeyboardInterrupt), stopped_by_sigterm():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize("ctrl_c", [signal.SIG_IGN, signal.default_int_handler], ids=["in the background", "in front"])
def test_sigterm_stops_a_loop_whether_or_not_ctrl_c_is_ignored(ctrl_c: Any) -> None:
    """A shell's background job ignores Ctrl-C, and a loop has its own way of it: by SIGTERM both are cancelled, and clear up first."""
    cleared = []

    async def work() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.sleep(60)
        finally:
            cleared.append(True)

    before = signal.signal(signal.SIGINT, ctrl_c)
    try:
        with pytest.raises(KeyboardInterrupt), stopped_by_sigterm():
            asyncio.run(work())
    finally:
        signal.signal(signal.SIGINT, before)
    assert cleared


def test_a_command_that_is_stopped_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Before a run is begun there is nothing to resume, and the one line says that."""

    def stopped() -> None:
        raise KeyboardInterrupt

    with pytest.raises(typer.Exit) as ended:
        guarded(stopped)()
    assert ended.value.exit_code == 130
    assert capsys.readouterr().err.count("\n") == 1
