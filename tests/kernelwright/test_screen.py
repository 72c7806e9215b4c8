"""What a person sees: help that can be copied, tables that fit, words on how to go on."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import sys
from io import StringIO
from pathlib import Path

import pytest
import typer
from rich.console import Console
from rich.text import Text

from agents.models import ChatModel, InFlight, ModelSettings, Trouble
from graphs.run.records import Delivery
from kernelwright.cli.app import app, commands, main
from kernelwright.cli.shared.help import GROUPS, OTHERS
from kernelwright.cli.shared.live import stoppable
from kernelwright.screen.ending import ended_in_words
from kernelwright.screen.facts import call_facts
from kernelwright.screen.hanging import print_hanging
from kernelwright.screen.lines import Lines
from kernelwright.screen.trace_views import calls_ended, calls_spent
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


def test_commands_are_made_once_and_keep_no_option(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A process that runs several makes none of them again, and what was asked of one is not asked of the next."""
    made = commands()
    assert json.loads(_printed(monkeypatch, capsys, "hardware", "h200", "--json"))
    assert not _printed(monkeypatch, capsys, "hardware", "h200").startswith(("{", "["))
    assert commands() is made


def test_many_options_stand_in_groups(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`optimize --help` lists each option once, under headings, those used most first; each has a group, and groups name no other."""
    shown = _printed(monkeypatch, capsys, "optimize", "--help")
    options = [one for one in typer.main.get_group(app).commands["optimize"].params if one.param_type_name == "option"]
    places = [shown.index(f"\n{heading}:\n") for heading in ("Arguments", *GROUPS, OTHERS)]
    assert places == sorted(places)
    for one in options:
        name = max(one.opts, key=len)
        assert len(re.findall(rf"^  (?:-\w, )?(?:[-\w]+, )?{name}\b(?!-)", shown, re.MULTILINE)) == 1, name
    assert {name for names in GROUPS.values() for name in names} == {one.name for one in options}


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


def test_failed_calls_of_a_model_are_counted_at_the_end(tmp_path: Path) -> None:
    """A run whose model failed says how often and why, and not that there were no calls."""
    store = small_services(tmp_path / "run").store
    for number in range(5):
        fields = {"role": "coder", "purpose": str(number), "model": "m", "turns": 2, "mend": "Wait."}
        store.put("trouble", str(number), Trouble(kind="unavailable", what="The model 'm' gave no reply.", **fields))
    calls = call_facts(store)
    assert calls_ended(calls) == "5 calls failed, 0 used. The model 'm' gave no reply."
    assert calls_spent({"tokens": 0, "money_usd": 0.0}, calls) != "no model calls"
    store.put_call("4", "{}")
    assert call_facts(store)["failed"] == 4


def test_calls_that_met_a_limit_are_counted_at_the_end(tmp_path: Path) -> None:
    """A call that the end of --minutes cut off is said with why, and the run does not say that there were no calls."""
    store = small_services(tmp_path / "run").store
    store.put("trouble", "a", Trouble(kind="budget", what="It was cut off.", role="coder", purpose="", model="m", turns=2, mend=""))
    calls = call_facts(store)
    assert calls_ended(calls) == "0 calls failed, 1 call cut off or not begun at a limit, 0 used. It was cut off."
    assert calls_spent({"tokens": 0, "money_usd": 0.0}, calls) == "no tokens counted"


def test_a_call_that_takes_long_is_mentioned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """While a model is asked a line says so, after 10 seconds and then at twice the time."""
    services = small_services(tmp_path / "run")
    model = ChatModel(ModelSettings(name="m", base_url="http://127.0.0.1:9/v1"))
    model.in_flight["key"] = InFlight("coder", "m", 300.0, began=100.0)
    services.team = dataclasses.replace(services.team, models=(model,))
    progress = Lines(services, Console(file=sys.stdout, highlight=False))
    for now in (101.0, 111.0, 115.0, 140.0):
        progress.mention(now)
    lines = [line.partition("model")[2].strip() for line in capsys.readouterr().out.splitlines()]
    assert [line.partition(" (")[0] for line in lines] == ["asking the model, 11 s", "asking the model, 40 s"]


def test_a_sentence_is_broken_between_words_below_itself() -> None:
    """On a terminal a long sentence hangs beside its label; a path, and what goes to a file, stays on one line."""
    said = "Not judged at full size: it is too large."
    path = "/home/user/.kernelwright/runs/softmax/result/kernel.py"
    watched, kept = (Console(file=StringIO(), width=30, force_terminal=terminal, color_system=None) for terminal in (True, False))
    for console in (watched, kept):
        print_hanging(console, Text("note: "), Text(said))
        print_hanging(console, Text("file: "), Text(path))
    assert _lines_of(watched) == ["note: Not judged at full size:", "      it is too large.", f"file: {path}"]
    assert _lines_of(kept) == [f"note: {said}", f"file: {path}"]


def _lines_of(console: Console) -> list[str]:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue().splitlines()
