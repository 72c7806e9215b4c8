"""What `trace` says of a run: what matters first, one line a candidate, the way to the best, two runs side by side."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from rich.console import Console

from graphs.optimize.execute import execute
from graphs.run.settings import RunSettings
from kernelwright.cli.app import main
from kernelwright.cli.commands import runs
from kernelwright.screen.chain import champion
from kernelwright.screen.facts import candidate_facts, candidate_lines, tree_facts
from kernelwright.screen.follow import follow
from kernelwright.screen.summary import summary_lines
from kernelwright.screen.trace_views import show_candidate
from kernelwright.screen.versus import incomparable
from tests.support.collector import Collector
from tests.support.loop import BadFirst, small_services, small_team
from tools.records import Budget
from tools.tracing import RunStore

Command = Callable[..., str]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with two finished runs, of four and of eight evaluations."""
    place = tmp_path_factory.mktemp("home")
    (place / "runs").mkdir()
    for name, evaluations in (("exp-1", 4), ("exp-2", 8)):
        settings = RunSettings(target="h200", memory=False, budget=Budget(evaluations=evaluations), repairs=0)
        services = small_services(place / "runs" / name, settings, team=small_team(BadFirst()))
        asyncio.run(execute(services, lambda event: None))
        services.store.close()
    return place


@pytest.fixture
def trace(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `kernelwright trace` and give what it printed, or with a `status` what it said on standard error."""

    def run(*words: str, status: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["kernelwright", "trace", "--home", str(home), *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert (ended.value.code or 0) == status
        said = capsys.readouterr()
        return said.err if status else said.out

    return run


def test_what_matters_comes_first(trace: Command) -> None:
    """The champion with its gain, what won it, what failed and why; then one line a candidate, and no reasons for plans."""
    shown = trace("exp-1")
    lines = shown.splitlines()
    assert lines[1].startswith("delivered")
    assert "2.00x, 50.0 µs est.: change tile sizes: BLOCK 64" in lines[1]
    assert "won by     change tile sizes: BLOCK 64: 2.00x the reference's speed, estimated (step 1 of 1)" in shown
    assert "failed     3 wrong: Error: as the text says" in shown
    assert "1 not written: 512 does not fit into shared memory." in shown
    tree = [line for line in lines if "──" in line]
    assert [line.split("── ")[1].split()[1] for line in tree if "not written" not in line] == ["wrong", "wrong", "right,", "wrong"]
    assert "It is next." not in shown


def test_a_delivered_kernel_is_as_fast_as_when_it_was_confirmed(home: Path) -> None:
    """What heads the trace is the confirmed gain and time, whatever the search had measured."""
    store = RunStore(home / "runs" / "exp-1")
    facts = tree_facts(store) | {"speedup": 2.25, "time_us": 44.4}
    store.close()
    assert "2.25x, 44.4 µs" in next(text for label, text, _ in summary_lines(facts) if label == "delivered")


def test_every_reason_on_demand(trace: Command) -> None:
    """`--verbose` has the planner's and the reviewer's words below each candidate."""
    assert "why: It is next." in trace("exp-1", "--verbose")


def test_the_way_to_the_best(trace: Command) -> None:
    """`--why` names each step with its gain, and as JSON has each step's gain with its tier; the steps begin at the reference."""
    shown = trace("exp-2", "--why")
    facts = json.loads(trace("exp-2", "--why", "--json"))
    assert [step["id"] for step in facts["steps"]][-1] == facts["champion"]
    assert facts["steps"][0]["parent"] == "root"
    assert all(step["gain"]["tier"] == "estimated" for step in facts["steps"])
    assert "1. change tile sizes: BLOCK 128" in shown
    assert "2.50x the reference's speed, estimated; 2.50x the best baseline's, 40.0 µs est." in shown
    assert "why:       It is next." in shown


def test_one_candidate_whole(trace: Command) -> None:
    """`--candidate` says in words what it does and why it failed, with its plan and its difference."""
    failed = next(line for line in json.loads(trace("exp-1", "--json"))["candidates"] if line["verdict"] == "WRONG")
    shown = trace("exp-1", "--candidate", failed["id"][:6])
    assert "does: change tile sizes: BLOCK 16" in shown
    assert "failed: Error: as the text says" in shown
    assert "plan (first-option): It is next." in shown
    assert "+# verdict: WRONG" in shown


def test_a_difference_that_goes_into_a_file_has_whole_lines(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither a line of code nor the path of the source is cut at 80 columns, where nobody watches."""
    store = RunStore(home / "runs" / "exp-1")
    facts = candidate_facts(store, candidate_lines(store)[0]["id"])
    show_candidate({**facts, "diff": f"+# {'long ' * 40}end", "source_file": f"/{'deep/' * 40}end.py"})
    assert [line[-3:] for line in capsys.readouterr().out.splitlines() if "long long" in line or "deep/deep" in line] == ["end", ".py"]


def test_a_run_goes_into_a_file_and_out_of_it_elsewhere(trace: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--export FILE` says how to look at it elsewhere, `runs --import` does, and `--export -` prints the same."""
    said = trace("exp-1", "--export", str(tmp_path / "exp.json"))
    assert "kernelwright runs --import exp.json" in said
    on_screen, in_file = json.loads(trace("exp-1", "--export", "-")), json.loads((tmp_path / "exp.json").read_text())
    assert on_screen | {"exported": 0} == in_file | {"exported": 0}
    runs.command(import_=tmp_path / "exp.json", schema=False, home=tmp_path / "elsewhere", json=False)
    assert capsys.readouterr().out == "exp-1 (see: kernelwright trace exp-1)\n"
    assert "delivered" in trace("exp-1", "--home", str(tmp_path / "elsewhere"))


def test_a_run_is_sent_afterwards(trace: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--send` says how many spans a collector took, and sends all of them however often it is asked."""
    with Collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
        said = [trace("exp-1", "--send"), trace("exp-1", "--send")]
        count = len({span.span_id for span in collector.spans})
    assert said == [f"OpenTelemetry: {count} spans sent\n"] * 2


def test_a_node_names_the_candidate_that_it_worked_on(trace: Command) -> None:
    """By the id that all other views have."""
    known = [line["id"][:6] for line in json.loads(trace("exp-1", "--json"))["candidates"]]
    shown = trace("exp-1", "--nodes")
    assert all(f"candidate {name}" in shown for name in known)


def test_two_runs_side_by_side(trace: Command) -> None:
    """What each came to, what differs in their settings, and a comparison where there can be one."""
    shown = trace("exp-1", "exp-2")
    assert "budget.evaluations: 4 | 8" in shown
    assert "estimated by a cost model" in shown
    faster = [line for line in shown.splitlines() if "as fast" in line or "equally fast" in line]
    assert len(faster) == 1


def test_times_that_do_not_compare() -> None:
    """Another problem, another device, and an estimate beside a measured time give no comparison, and say why."""

    def run(target: str, tier: str) -> dict[str, Any]:
        line = {"id": "a", "speedup": 2.0, "tier": tier, "parent": "root"}
        return {"target": target, "candidates": [line], "delivery": None}

    h200, a100, measured = run("h200", "estimated"), run("a100", "estimated"), run("h200", "sealed")
    assert incomparable([h200, h200], same_problem=True) == ""
    assert "different problems" in incomparable([h200, h200], same_problem=False)
    assert "different devices" in incomparable([h200, a100], same_problem=True)
    assert "measured" in incomparable([h200, measured], same_problem=True)


def test_the_best_of_a_run_that_goes_on() -> None:
    """While nothing is delivered the best is the fastest, and a measured one before every estimate."""
    lines = [{"id": name, "speedup": gain, "tier": tier} for name, gain, tier in (("a", 9.0, "estimated"), ("b", 2.0, "sealed"))]
    best = champion({"candidates": [*lines, {"id": "c", "speedup": None, "tier": None}], "delivery": None})
    assert best is not None
    assert best["id"] == "b"


def test_following_ends_with_the_run(home: Path) -> None:
    """Each candidate is told once, what was confirmed a second time as that; an ended run is not waited for."""
    out = io.StringIO()
    waits: list[float] = []
    assert follow(RunStore(home / "runs" / "exp-1"), Console(file=out, width=200), waits.append)
    said = out.getvalue().splitlines()
    first = [line for line in said if not line.startswith(("again", "not written"))]
    assert [line.split()[1].strip(":") for line in first] == ["wrong", "wrong", "right", "wrong"]
    assert [line.split(":")[0] for line in said].count("again") == 1
    assert waits == []


def test_following_waits_while_somebody_works(tmp_path: Path) -> None:
    """It looks again while a process holds the run, and ends where nobody does."""
    services = small_services(tmp_path / "run")
    lock = FileLock(tmp_path / "run" / "lock", thread_local=False, is_singleton=False)
    lock.acquire()
    waits: list[float] = []

    def pause(seconds: float) -> None:
        waits.append(seconds)
        lock.release()

    assert not follow(services.store, Console(file=io.StringIO()), pause)
    assert len(waits) == 1


def test_one_view_at_a_time(trace: Command) -> None:
    """Two views at once are wrong input, and so is a second run that there is none of."""
    assert "Give one of them" in trace("exp-1", "--why", "--costs", status=2)
    assert "There is no run" in trace("exp-1", "nowhere", status=2)
