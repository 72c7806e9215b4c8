"""Every prompt of every role, in each of its forms, for the sample case."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import agents.coder.llm as coder
import agents.planner.llm as planner
import agents.profiler.llm as profiler
import agents.reviewer.llm as reviewer
from agents.coder.protocol import Draft
from agents.models import Message
from agents.prompting.frame import Frame
from agents.samples import case as samples
from agents.samples.sources import CUDA_KERNEL, KERNEL
from tools.records import ATTEMPT, IDEA, Action, ActionKind, Verdict

IDEAS: dict[str, dict[str, int | str]] = {"its own": {ATTEMPT: 2}, "a planner's": {IDEA: "One warp a row, four rows a program."}}
TUNED = Action(kind=ActionKind.TILING, region="softmax_kernel", parameters={"ROWS": 4})


class Sample(NamedTuple):
    """One rendered prompt."""

    title: str
    """What the role is asked there."""
    role: str
    messages: tuple[Message, ...]


def sample_prompts() -> Iterator[Sample]:
    """Render every role's question in each of its forms."""
    yield from _planner()
    yield from _coder()
    profile = profiler.view(samples.profile(), samples.problem(), samples.SHEET, samples.passed().kernels)
    yield Sample("What limits this candidate?", "profiler", profiler.PROMPTS.opening("diagnose", "profiler", Frame(), **profile))
    passed, failed = samples.case(), samples.case(samples.failed(log="boom"))
    for title, case in (("What is to be said of a candidate that passed?", passed), ("And of one that failed?", failed)):
        yield Sample(title, "reviewer", reviewer.PROMPTS.opening("review", "reviewer", Frame(), **reviewer.view(case, samples.review())))


def corrections() -> Iterator[Sample]:
    """Render what is said to an answer that cannot be used."""
    for free in (False, True):
        text = planner.PROMPTS.render("invalid", faults=["tiling r7 (BLOCK_N=3): this is not one of the options"], count=2, free=free)
        yield Sample("Plans that cannot be used" + (", free coder" if free else ""), "planner", (Message(role="user", content=text),))
    text = planner.PROMPTS.render("edit_invalid", faults=["update 3: node 3 is closed"], free=False)
    yield Sample("Edits that cannot be made", "planner", (Message(role="user", content=text),))
    for parts in (0, 2):
        text = coder.PROMPTS.render(
            "unusable", complaint="There is no fenced block of Python in the answer.", parts=parts, edits=bool(parts)
        )
        yield Sample("A source that cannot be used" + (", marked parent" if parts else ""), "coder", (Message(role="user", content=text),))


def _planner() -> Iterator[Sample]:
    advice = samples.recalled(samples.strategy()), samples.recalled(samples.strategy(ActionKind.TILING), -0.2, warning=True)
    done = (samples.tried(samples.TILING[0], 1.1), samples.tried(samples.TILING[1], None, None))
    parent = samples.candidate()
    briefings: dict[str, dict[str, Any]] = {
        "The first step, built-in coder": {},
        "A step on a kernel, with memory": {"parent": parent.id, "parent_source": parent.source, "recalled": advice, "tried": done},
        "A free coder": {"free": True, "options": (), "parent": parent.id, "parent_source": parent.source},
        "A mixed coder": {"free": True, "standing": samples.standing(), "made_of": {"r0": "library: mul", "r1": "rows: softmax"}},
        "With programs of an archive": {
            "parent": parent.id,
            "parent_source": parent.source,
            "inspirations": samples.programs(),
        },
    }
    for title, changes in briefings.items():
        view = planner.view(samples.briefing(**changes), 2)
        yield Sample(title, "planner", planner.PROMPTS.opening("plan", "planner", Frame(), **view))
    case = samples.tree_case()
    view = planner.view(case.briefing, case.most)
    for title, rank in (("Weighing the choices of an episode", False), ("Ranking them, where a server gives no log-probabilities", True)):
        weighing = planner.weigh_view(samples.weigh_case(), rank=rank)
        yield Sample(title, "planner", planner.PROMPTS.opening("weigh", "planner", Frame(), **weighing))
    yield Sample("Edits of a tree of decisions", "planner", planner.PROMPTS.opening("edit", "planner", Frame(), **view, case=case))


def _coder() -> Iterator[Sample]:
    native = samples.candidate().model_copy(update={"source": CUDA_KERNEL})
    for title, task, start, frame in (
        ("The first kernel, from scratch", samples.task(), "", Frame()),
        ("The first kernel, from the built-in coder's", samples.task(), KERNEL, Frame()),
        ("A change of a kernel whose region is marked", samples.task(samples.candidate(), TUNED), "", Frame()),
        ("A change of a kernel whose region is not in it", samples.task(samples.candidate()), "", Frame()),
        ("The first kernel, CUDA C++", samples.task(), "", Frame(language="cuda")),
        ("A change of CUDA C++", samples.task(native, TUNED), "", Frame(language="cuda")),
    ):
        yield Sample(title, "coder", coder.PROMPTS.opening("write", "coder", frame, **coder.view(task), start=start))
    for whose, parameters in IDEAS.items():
        for title, task, start in (
            ("from the reference", samples.task(action=_rewrite(parameters)), KERNEL),
            ("from a kernel", samples.task(samples.candidate(), _rewrite(parameters)), ""),
        ):
            known = {"standing": samples.standing(), "evaluation": samples.passed(), "recalled": (samples.recalled(samples.strategy()),)}
            told = task.model_copy(update=known if task.parent else {})
            yield Sample(
                f"A design, {whose}, {title}", "coder", coder.PROMPTS.opening("design", "coder", Frame(), **coder.view(told), start=start)
            )
    shown = samples.task(samples.candidate(), TUNED).model_copy(update={"programs": samples.programs()})
    view = coder.view(shown)
    yield Sample("With programs of an archive", "coder", coder.PROMPTS.opening("write", "coder", Frame(), **view, start=""))
    for verdict, log in ((Verdict.WRONG, ""), (Verdict.CRASHED, "RuntimeError: boom")):
        task = samples.task(samples.candidate(), TUNED)
        view, given = coder.view(task), coder.failure_view(task, Draft(source=KERNEL), samples.failed(verdict, log), 1)
        yield Sample(f"A candidate that ended {verdict}", "repairer", coder.PROMPTS.opening("repair", "repairer", Frame(), **view, **given))
    task = samples.task(action=_rewrite(IDEAS["its own"]))
    design = Draft(source=KERNEL, idea="Two rows a program.")
    view, given = coder.view(task), coder.failure_view(task, design, samples.failed(Verdict.WRONG), 1)
    yield Sample("A design that was wrong", "repairer", coder.PROMPTS.opening("repair", "repairer", Frame(), **view, **given))


def _rewrite(parameters: dict[str, int | str]) -> Action:
    return Action(kind=ActionKind.REWRITE, region="Model", parameters=parameters)
