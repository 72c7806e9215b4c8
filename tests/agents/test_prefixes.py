"""What is the same in every prompt of a role stands first, so that servers which keep what they have read need not read it again."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

import agents.coder.llm as coder
import agents.planner.llm as planner
import agents.profiler.llm as profiler
import agents.reviewer.llm as reviewer
from agents.coder.protocol import Draft
from agents.models import Message
from agents.prompting.frame import Frame
from agents.prompting.render import Prompts
from agents.records.standing import Attempt
from agents.samples import case as samples
from tools.actions import render_guide
from tools.records import ATTEMPT, Action, ActionKind, Bottleneck, Verdict

Pair = tuple[tuple[Message, ...], tuple[Message, ...]]
SHEET = "L2 cache 50 MiB"
"""In the last lines of the sheet, which follows the problem."""
PARENT = samples.candidate()
LATER = samples.profile(Bottleneck.MEMORY_LATENCY, PARENT.id)
BEFORE = samples.standing()
MORE = Attempt(
    candidate="0f1e2d3c4b5a6978", parent=PARENT.id, action=samples.TILING[1], verdict=Verdict.PASS, time_us=19.0, tier="bracketed"
)
AFTER = BEFORE.model_copy(update={"attempts": (*BEFORE.attempts, MORE)})


def asked(prompts: Prompts, template: str, role: str, **values: object) -> tuple[Message, ...]:
    """Render a question."""
    return prompts.opening(template, role, Frame(), **values)


def planned() -> Pair:
    """Plans on the reference, then on its child."""
    first = samples.briefing(standing=BEFORE)
    then = samples.briefing(parent=PARENT.id, parent_source=PARENT.source, profile=LATER, standing=AFTER)
    return asked(planner.PROMPTS, "plan", "planner", **planner.view(first, 2)), asked(
        planner.PROMPTS, "plan", "planner", **planner.view(then, 2)
    )


def designed() -> Pair:
    """A second design after one more attempt."""
    found = []
    for number, standing, doubt in ((1, BEFORE, ""), (2, AFTER, "Its time is doubtful.")):
        design = Action(kind=ActionKind.REWRITE, region="Model", parameters={ATTEMPT: number})
        task = samples.task(PARENT, design).model_copy(update={"standing": standing, "doubt": doubt})
        found.append(asked(coder.PROMPTS, "design", "coder", **coder.view(task), start=""))
    return found[0], found[1]


def written() -> Pair:
    """Two actions on different parents."""
    first, then = samples.task(), samples.task(PARENT, samples.FUSION)
    return asked(coder.PROMPTS, "write", "coder", **coder.view(first), start=""), asked(
        coder.PROMPTS, "write", "coder", **coder.view(then), start=""
    )


def mended() -> Pair:
    """Repairs of two drafts."""
    found = []
    for action, log in ((samples.TILING[0], "RuntimeError: boom"), (samples.FUSION, "")):
        task, verdict = samples.task(PARENT, action), Verdict.CRASHED if log else Verdict.WRONG
        given = coder.failure_view(task, Draft(source=PARENT.source), samples.failed(verdict, log), 1)
        found.append(asked(coder.PROMPTS, "repair", "repairer", **coder.view(task), **given))
    return found[0], found[1]


def diagnosed() -> Pair:
    """The reference's profile, then a candidate's."""
    first, then = (profiler.view(one, samples.problem(), samples.SHEET, ()) for one in (samples.profile(), LATER))
    return asked(profiler.PROMPTS, "diagnose", "profiler", **first), asked(profiler.PROMPTS, "diagnose", "profiler", **then)


def reviewed() -> Pair:
    """A candidate that passed, then one that failed."""
    first, then = (reviewer.view(one, samples.review()) for one in (samples.case(), samples.case(samples.failed(log="boom"))))
    return asked(reviewer.PROMPTS, "review", "reviewer", **first), asked(reviewer.PROMPTS, "review", "reviewer", **then)


@pytest.mark.parametrize(
    ("pair", "told"),
    [
        (planned, (render_guide().strip(), SHEET, "limits of output0", "Two rows a program.")),
        (designed, ("The reference:", SHEET, "# Idioms that may fit", "Two rows a program.")),
        (written, ("The reference:", SHEET)),
        (mended, ("The reference:", SHEET, "# Profile of the parent")),
        (diagnosed, (SHEET,)),
        (reviewed, ("Compulsory traffic:",)),
    ],
)
def test_consecutive_prompts_begin_alike(pair: Callable[[], Pair], told: tuple[str, ...]) -> None:
    """Two prompts of a role in one run share the system message and all that does not change with parent and plan."""
    first, then = pair()
    assert first[0] == then[0]
    lines = zip(first[1].content.splitlines(), then[1].content.splitlines(), strict=False)
    shared = "\n".join(one for one, _ in itertools.takewhile(lambda both: both[0] == both[1], lines))
    assert [one for one in told if one not in shared] == []


def test_designs_and_actions_have_one_system_message() -> None:
    """A coder that gets both keeps its beginning."""
    one, other = designed()[0][0], written()[0][0]
    assert one == other
