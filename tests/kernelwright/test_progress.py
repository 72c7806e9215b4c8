"""What a run says of itself while it works and when it ends: in words, and with nothing estimated that looks measured."""

from __future__ import annotations

import asyncio
import dataclasses
import io
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from agents.coder.protocol import Refusal
from agents.models import ChatModel, InFlight, ModelSettings, Trouble
from graphs.optimize.execute import execute
from graphs.run.context import Services
from graphs.run.settings import RunSettings
from kernelwright.cli.shared.live import teller_for
from kernelwright.screen.board import Board, Row
from kernelwright.screen.ending import print_result
from kernelwright.screen.facts import result_facts
from kernelwright.screen.lines import Lines, best_in_words
from kernelwright.screen.next_steps import next_commands
from kernelwright.screen.reasons import Reasons
from kernelwright.screen.table import LiveTable
from kernelwright.screen.telling import Teller
from kernelwright.screen.words import SURE, VERDICTS, action_in_words, candidate_in_words, shortened
from tests.support.loop import BadFirst, small_services, small_team
from tools.codegen import Region, Schedule
from tools.codegen.schedule.words import parameter_in_words
from tools.codegen.templates.registry import TEMPLATES
from tools.cost.choice import choice_action
from tools.records import DEFAULT_POLICY, Action, ActionKind, Budget, Candidate, PrecisionPolicy, Tier, Verdict


@pytest.fixture
def services(tmp_path: Path) -> Services:
    """A run of four evaluations, two a round, whose first round comes to nothing."""
    settings = RunSettings(target="h200", memory=False, budget=Budget(evaluations=4), repairs=0, problem_file="exp.py")
    (tmp_path / "runs").mkdir()
    return small_services(tmp_path / "runs" / "exp-1", settings, team=small_team(BadFirst()))


def console(*, terminal: bool = False) -> tuple[Console, io.StringIO]:
    """A console and what it prints."""
    out = io.StringIO()
    return Console(file=out, width=100, force_terminal=terminal, highlight=False, color_system=None), out


def told(services: Services, kind: type[Teller], *, terminal: bool = False) -> str:
    """Run it all, and give what one form of progress prints."""
    printed, out = console(terminal=terminal)
    teller = kind(services, printed)
    teller.start()
    asyncio.run(execute(services, teller))
    teller.close()
    return out.getvalue()


def test_one_line_a_round(services: Services) -> None:
    """Where nobody watches, a round is one line: how its candidates ended and why, the best so far, what is left; no reasons for plans."""
    shown = told(services, Lines)
    rounds = [line.partition("round")[2].strip() for line in shown.splitlines() if "s round" in line]
    assert rounds[0] == (
        "1   2 candidates: 1 wrong (Error: as the text says), 1 not written (512 does not fit into shared memory.); "
        "best so far none yet; 3 of 4 evaluations left"
    )
    assert "best so far 2.00x, 50.0 µs est.: change tile sizes: BLOCK 64; 1 of 4 evaluations left" in rounds[1]
    assert len(rounds) == 3
    assert "It is next." not in shown


def test_a_table_that_grows(services: Services) -> None:
    """On a terminal each candidate is a row with verdict, time and gain; what is not right says why below itself."""
    shown = told(services, LiveTable, terminal=True)
    row = next(line for line in shown.splitlines() if "right, best so far" in line)
    assert row.split("BLOCK 64")[1].split() == ["right,", "best", "so", "far", "50.0", "µs", "est.", "2.00x"]
    assert "Error: as the text says" in shown
    assert "512 does not fit into shared memory." in shown
    assert "writing and judging" in shown
    assert "━" in shown
    assert "0 of 4 evaluations left" in shown


def test_rows_of_a_round_are_not_drawn_twice(services: Services) -> None:
    """What is printed for good is drawn no more."""
    table = LiveTable(services, console(terminal=True)[0])
    table.board.rows = [Row(1, "plan", "what", done=True)]
    table.end_round(table.board.rows)
    assert table.board.rows == []


def test_every_reason_on_demand(services: Services) -> None:
    """`--verbose` prints the planner's and the reviewer's sentences."""
    shown = told(services, Reasons)
    assert "It is next." in shown
    assert "nothing was timed, and how far the model is off here is not known" in shown


def test_who_watches_gets_the_table(services: Services) -> None:
    """A table on a terminal; lines where standard output is none, or the terminal cannot draw; reasons where they are asked for."""
    terminal, pipe = console(terminal=True)[0], console()[0]
    dumb = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})
    assert type(teller_for(services, terminal, verbose=False, watched=True)) is LiveTable
    assert type(teller_for(services, terminal, verbose=True, watched=True)) is Reasons
    lines = [teller_for(services, one, verbose=False, watched=watched) for one, watched in ((terminal, False), (pipe, True), (dumb, True))]
    assert {type(one) for one in lines} == {Lines}


def test_a_run_that_goes_on_knows_its_best(services: Services) -> None:
    """The best of earlier sessions is the best so far; a round that was cut short has its rows when they are reviewed."""
    told(services, Lines)
    board = Board(services)
    assert (board.round, best_in_words(board.best)) == (3, "2.00x, 50.0 µs est.: change tile sizes: BLOCK 64")
    plan, candidate = next((plan, "") for plan in services.store.all("refusal", Refusal))
    board({"event": "reviewed", "plan": plan, "candidate": candidate})
    assert [row.verdict for row in board.rows] == ["not written"]


def test_a_measured_time_goes_before_an_estimate(services: Services) -> None:
    """A measured gain is the best so far whatever was estimated, and is not marked as estimated."""
    board = Board(services)
    for tier, gain in ((Tier.ESTIMATED, 9.0), (Tier.SEALED, 1.5), (Tier.ESTIMATED, 10.0)):
        board._compare(Row(1, "plan", f"{tier}", time_us=10.0, tier=tier, gain=gain))
    assert best_in_words(board.best) == "1.50x, 10.0 µs: sealed"


def test_what_is_left_of_every_limit(services: Services) -> None:
    """Each limit that was set says how much of it is left; the bar shows the one that is nearest."""
    board = Board(services)
    budget = Budget(evaluations=8, tokens=1000, money_usd=2.0, wall_s=600.0, gpu_s=30.0)
    services.settings = services.settings.model_copy(update={"budget": budget})
    board.spent = board.spent.model_copy(update={"evaluations": 2, "wall_s": 450.0, "tokens": 100})
    assert list(board.left()) == ["6 of 8 evaluations", "2.5 of 10 min", "2.00 of 2 USD", "900 of 1,000 tokens", "30 of 30 GPU s"]
    assert board.share() == 0.75


def test_a_model_that_fails_stays_visible(services: Services) -> None:
    """Calls that failed are said when the round is over, and once."""
    printed, out = console()
    lines = Lines(services, printed)
    model = ChatModel(ModelSettings(name="m", base_url="http://127.0.0.1:9/v1"))
    services.team = dataclasses.replace(services.team, models=(model,))
    fields = {"role": "coder", "purpose": "1", "model": "m", "turns": 2, "mend": "Wait."}
    services.store.put("trouble", "1", Trouble(kind="unavailable", what="The model 'm' gave no reply.", **fields))
    lines.warn()
    lines.warn()
    assert out.getvalue().count("1 call failed, 0 used. The model 'm' gave no reply.") == 1


def test_the_table_shows_whom_it_waits_for(services: Services) -> None:
    """A model's call in flight stands below the table with its seconds."""
    table = LiveTable(services, console(terminal=True)[0])
    model = ChatModel(ModelSettings(name="m", base_url="http://127.0.0.1:9/v1"))
    model.in_flight["key"] = InFlight("coder", "m", 300.0, began=100.0)
    services.team = dataclasses.replace(services.team, models=(model,))
    table.mention(140.0)
    printed, out = console()
    printed.print(table.shown())
    assert "asking m as coder, 40 s of at most 300 s" in out.getvalue()


def test_a_silence_says_whom_it_waits_for(services: Services) -> None:
    """Nothing else happening, a line says how long the model has been asked, and that this follows an answer of its own."""
    printed, out = console()
    lines = Lines(services, printed)
    model = ChatModel(ModelSettings(name="m", base_url="http://127.0.0.1:9/v1"))
    services.team = dataclasses.replace(services.team, models=(model,))
    now = time.monotonic()
    model.in_flight["key"] = InFlight("coder", "m", 300.0, began=now - 12.0, again=True)
    lines.mention(now)
    lines.mention(now + 20.0)
    assert "asking the model again, 12 s" in out.getvalue()
    lines.mention(now + 40.0)
    assert "; the model has been asked for 52 s" in out.getvalue()


def test_a_long_silence_is_told_less_and_less_often(services: Services) -> None:
    """After a first line the next one comes after twice as long, until something else is said."""
    printed, out = console()
    lines = Lines(services, printed)
    now = time.monotonic()
    for later, count in ((20.0, 1), (20.0, 1), (35.0, 2), (35.0, 2)):
        lines.mention(now + later)
        assert out.getvalue().count("working") == count
    lines.say("round 1", "over")
    lines.mention(time.monotonic() + 20.0)
    assert out.getvalue().count("working") == 3


def test_a_run_that_goes_on_says_with_which_round(services: Services) -> None:
    """What it was doing when it was stopped is not what a new run does first."""
    assert Board(services).doing == "examining the reference"
    told(services, Lines)
    assert Board(services).doing.startswith("going on with round ")


def test_the_end_of_a_run(services: Services) -> None:
    """What was delivered in words, how sure it is, warnings, and three commands, the first of which checks the evidence."""
    told(services, Lines)
    facts = result_facts(services.store)
    facts["evaluation"]["notes"] = ["Not judged at full size."]
    printed, out = console()
    print_result(printed, facts)
    shown = out.getvalue()
    assert "delivered: change tile sizes: BLOCK 64" in shown
    assert f"fast: {SURE[Tier.ESTIMATED]}" in shown
    assert "1 call in Triton's interpreter at 1 size; its error is at most 25% of the limit" in shown
    assert "note:      Not judged at full size." in shown
    commands = [line.partition(": ")[2].strip() for line in shown.partition("next:")[2].splitlines() if line.strip()]
    assert [one.split()[1] for one in commands] == ["verify", "trace", "evaluate"]
    assert f"--home {services.store.folder.parent.parent}" in commands[1]


@pytest.mark.parametrize(
    ("update", "names"),
    [
        ({"tier": "sealed"}, ["verify", "trace", "optimize"]),
        ({"problem_file": ""}, ["verify", "trace", "trace"]),
        ({"kernel": None, "bundle": None, "unconfirmed": "u.py"}, ["evaluate", "trace", "doctor"]),
        ({"kernel": None, "bundle": None, "judged": False}, ["doctor", "trace", "trace"]),
        ({"kernel": None, "bundle": None}, ["trace", "explain", "optimize"]),
    ],
)
def test_three_commands_for_every_end(update: dict[str, Any], names: list[str]) -> None:
    """Whatever a run came to, three commands go on from there."""
    facts = {
        "kernel": "k.py", "bundle": "b", "unconfirmed": None, "judged": True, "tier": "estimated", "problem_file": "f.py", "run": "r",
        "folder": "/h/runs/r", "evaluations": 4, "entry": "", "policy": DEFAULT_POLICY.model_dump(mode="json"), "target": "h200",
    }  # fmt: skip
    assert [command.split()[1] for _, command in next_commands({**facts, **update})] == names


def test_commands_judge_as_the_run_did() -> None:
    """What a file does not tell, policy, what it allows, and an estimate's target stand in the commands; what nobody wrote a model may."""
    policy = PrecisionPolicy(name="bf16", tolerance=1e-3, non_finite=True).model_dump(mode="json")
    facts = {
        "kernel": None, "bundle": None, "unconfirmed": None, "judged": True, "tier": None, "problem_file": "f.py", "run": "r",
        "folder": "/h/runs/r", "evaluations": 4, "entry": "twice", "policy": policy, "target": "a100",
    }  # fmt: skip
    _, (_, explain), (_, more) = next_commands(facts)
    assert explain == "kernelwright explain f.py --entry twice --policy bf16 --target a100"
    assert more == "kernelwright optimize f.py --budget 32 --entry twice --policy bf16 --tolerance 0.001 --non-finite --target a100"
    _, _, (_, model) = next_commands({**facts, "evaluations": 0, "policy": DEFAULT_POLICY.model_dump(mode="json"), "target": "h200"})
    assert model == "kernelwright optimize f.py --model NAME --base-url URL --entry twice"
    _, _, (_, judge) = next_commands({**facts, "kernel": "k.py", "bundle": "b", "tier": "estimated"})
    assert judge == "kernelwright evaluate f.py k.py --entry twice --policy bf16 --tolerance 0.001 --non-finite"


def written(**fields: Any) -> Candidate:
    """A candidate of which only what it does matters."""
    action = Action(kind=ActionKind.LAUNCH, region="r0", parameters={"num_warps": 8})
    return Candidate.model_validate({"problem": "p", "parent": "root", "action": action, "source": "", "coder": "builtin", **fields})


IDLE = {"SPLITS": 32, "STEPS": 1, "COPIES": 1, "num_warps": 16}
PRODUCTS = {"num_stages": 3, "SPLIT_K": 1, "precision": "tf32x3", "accumulate": "chunked", "GROUP_M": 8}


@pytest.mark.parametrize(
    ("regions", "words"),
    [
        (
            [
                (
                    "matmul",
                    ("linear", "gelu"),
                    {"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 32, "num_warps": 8, "num_stages": 3, "SPLIT_K": 1, **PRODUCTS},
                )
            ],
            "one kernel, 128x64 tiles, 8 warps, steps of 32, 3 stages, tf32x3 products",
        ),
        (
            [("rows", ("softmax",), {"algorithm": "registers", "ROWS": 1, "BLOCK_N": 1024, "UNROLL": 4, "SPLITS": 2, "num_warps": 1})],
            "one kernel, rows in registers, 1 warp",
        ),
        (
            [("tile", ("amax",), {"algorithm": "tile", "reduction": "looped", "BLOCK_M": 1, "BLOCK_N": 32, "BLOCK_K": 64, **IDLE})],
            "one kernel, 1x32 tiles, 16 warps, sums step by step, steps of 64",
        ),
        (
            [("tile", ("index_add",), {"algorithm": "flat", "reduction": "registers", "BLOCK_M": 1, "BLOCK_N": 512, **IDLE, "COPIES": 8})],
            "one kernel, 512 elements a program, 16 warps, sums in registers, sums added to 8 copies",
        ),
        (
            [
                ("pointwise", ("add", "relu", "mul"), {"algorithm": "flat", "ELEMENTS": 8, "num_warps": 4}),
                ("library", ("conv2d",), {}),
            ],
            "one kernel, add and 2 more: 8 elements a thread, 4 warps; conv2d by the library",
        ),
    ],
)
def test_a_schedule_in_words(regions: list[tuple[str, tuple[str, ...], dict[str, Any]]], words: str) -> None:
    """A candidate says what it does, without names of parameters, and without numbers that its algorithm leaves idle."""
    made = tuple(Region(id=f"r{n}", template=t, nodes=nodes, parameters=p) for n, (t, nodes, p) in enumerate(regions))
    assert candidate_in_words(written(schedule=Schedule(regions=made).model_dump_json())) == words


def test_every_parameter_has_words() -> None:
    """Whatever a template lets vary, a person reads no name of a parameter."""
    knobs = [(name, value) for template in TEMPLATES for name, knob in template.knobs.items() for value in knob.values]
    assert [name for name, value in knobs if parameter_in_words(name, value) == f"{name} {value}"] == []


def test_other_candidates_in_words() -> None:
    """The user's kernel is called that; a model's says what its writer changed, and after how many repairs."""
    assert candidate_in_words(written(coder="user")) == "your kernel"
    action = Action(kind=ActionKind.FUSION, region="shifted_softmax")
    assert candidate_in_words(written(coder="m", action=action, repairs=1)) == "fuse operators in shifted_softmax, 1 repair"


def test_plans_in_words() -> None:
    """A plan names operators, not regions, and the cost model's wish by its place."""
    schedule = Schedule(regions=(Region(id="r0", template="rows", nodes=("softmax",), parameters={}),))
    parent = written(schedule=schedule.model_dump_json())
    assert action_in_words(written().action, parent) == "change the launch in softmax: 8 warps"
    assert action_in_words(Action(kind=ActionKind.LAUNCH, region="r0", parameters={"tune": 8}), parent) == (
        "tune the numbers of softmax, 8 trials at most"
    )
    assert action_in_words(choice_action(1), None) == "the cost model's first choice"
    assert action_in_words(choice_action(4), None) == "the cost model's choice number 4"


def test_every_verdict_and_tier_has_words() -> None:
    """No enum is shown raw."""
    assert (set(VERDICTS), set(SURE)) == (set(Verdict), set(Tier))


def test_a_reason_is_one_line() -> None:
    """What a stranger's log says cannot steer the terminal or fill it."""
    said = shortened("first\x1b[2J\n" + "word " * 100)
    assert said.startswith("first")
    assert "\x1b" not in said
    assert len(said) <= 162


def test_a_design_is_shown_by_its_idea() -> None:
    """What a model wrote as a whole is named by the idea that it stated; a design that a planner stated by that, one to come as such."""
    own = Action(kind=ActionKind.REWRITE, region="f", parameters={"attempt": 2})
    said = Action(kind=ActionKind.REWRITE, region="f", parameters={"idea": "a chunked scan"})
    written = Candidate(problem="p", parent="root", action=own, source="x = 1\n", coder="m", idea="One pass over the row.")
    assert candidate_in_words(written) == "One pass over the row"
    assert candidate_in_words(written.model_copy(update={"repairs": 2})) == "One pass over the row, 2 repairs"
    assert action_in_words(own, None) == "a design of the model's own"
    assert action_in_words(said, None) == "a design: a chunked scan"


def test_a_long_silence_is_broken(services: Services) -> None:
    """Where nothing happens for a while, a line says what is being done and since when; where lines come, none is added."""
    printed, out = console()
    teller = Lines(services, printed)
    teller.say("run", "begins")
    teller.mention(time.monotonic() + 5)
    assert out.getvalue().count("\n") == 1
    teller.mention(teller.board.since + 20)
    assert "working   examining the reference, 20 s" in out.getvalue()
