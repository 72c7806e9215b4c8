"""What a person sees: help that can be copied, tables that fit, words on how to go on."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from graphs.run.records import Delivery
from kernelwright.cli.app import main
from kernelwright.cli.live import ended_in_words, stoppable
from tests.support.loop import small_services
from tools.records import Budget, Spent
from tools.tracing import RunStore


def _printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    monkeypatch.setattr(sys, "argv", ["kernelwright", *arguments])
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "example"),
    [
        (("optimize",), "kernelwright optimize my_operator.py --model qwen3-coder --base-url http://localhost:8000/v1"),
        (("resume",), "kernelwright resume softmax-20261121"),
        (("knowledge", "worth"), "kernelwright knowledge worth data/operators --held-out 2%3 --seeds 3 --out worth"),
        (("bench", "report"), "kernelwright bench report results/shard1 results/shard2 --out results/h200"),
    ],
)
def test_examples_keep_their_lines(
    command: tuple[str, ...], example: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An example in `--help` is one line that can be copied, however narrow the terminal is."""
    assert example in _printed(monkeypatch, capsys, *command, "--help")


def test_a_narrow_table_of_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """At 80 columns the long name of a run is folded; whether its figure is estimated is never cut off."""
    run = tmp_path / "runs" / ("a_long_operator_name_" * 3 + "20261121-121728-e2c8")
    run.parent.mkdir()
    small_services(run).store.close()
    shown = _printed(monkeypatch, capsys, "runs", "--home", str(tmp_path))
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.splitlines()[0].split() == ["run", "state", "target", "evals", "speed-up", "tier"]
    assert json.loads(_printed(monkeypatch, capsys, "runs", "--home", str(tmp_path), "--json"))[0]["state"] == "unfinished"


def test_every_limit_has_words() -> None:
    """Where a limit ended the search, the result names the option that set it."""
    for name in Budget.model_fields:
        reached = Budget(**{name: 1}).exhausted(Spent(**{name: 1}))
        assert reached
        assert "--" in ended_in_words(reached)
    assert ended_in_words("no faster candidate in 4 rounds") == "no faster candidate in 4 rounds"


def test_a_stopped_run_says_how_to_go_on(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Ctrl-C ends with the very command that goes on, and the run stays to be gone on with."""

    async def stopped() -> None:
        services = small_services(tmp_path / "exp-1")
        task = asyncio.create_task(stoppable(services, lambda event: task.cancel() and None))
        with pytest.raises(asyncio.CancelledError):
            await task
        services.store.close()

    asyncio.run(stopped())
    assert "kernelwright resume exp-1" in capsys.readouterr().err
    assert not RunStore(tmp_path / "exp-1").all("delivery", Delivery)
