"""Every prompt of every role, rendered for a sample case with undefined variables as errors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import agents.coder.llm as coder
import agents.planner.llm as planner
import agents.profiler.llm as profiler
import agents.reviewer.llm as reviewer
from agents.coder.protocol import Draft
from agents.prompting import SHARED, Prompts, clip, fence
from tests.agents import samples
from tools.actions import GUIDE, render_guide
from tools.records import Action, ActionKind, Bottleneck, Verdict


def rendered() -> Iterator[tuple[str, str]]:
    """Name and text of every prompt, each in its forms."""
    advice = samples.recalled(samples.strategy()), samples.recalled(samples.strategy(ActionKind.TILING), -0.2, warning=True)
    done = (samples.tried(samples.TILING[0], 1.1), samples.tried(samples.TILING[1], None, None))
    parent = samples.candidate()
    for name, changes in {
        "root": {},
        "kernel": {"parent": parent.id, "parent_source": parent.source, "recalled": advice, "tried": done},
        "free": {"free": True, "options": ()},
        "mixed": {"free": True},
    }.items():
        briefing = samples.briefing(**changes)
        for message in planner.PROMPTS.opening("plan", **planner.view(briefing, 2)):
            yield f"planner {name} {message.role}", message.content
        yield f"planner {name} invalid", planner.PROMPTS.render("invalid", faults=["it is wrong"], count=2, free=briefing.free)
    for name, task, start in (
        ("root", samples.task(), ""),
        ("start", samples.task(), samples.KERNEL),
        ("kernel", samples.task(parent), ""),
    ):
        for message in coder.PROMPTS.opening("write", role="coder", **coder.view(task), start=start):
            yield f"coder {name} {message.role}", message.content
    for verdict in (Verdict.WRONG, Verdict.CRASHED):
        for message in coder.PROMPTS.opening(
            "repair",
            role="repairer",
            **coder.view(samples.task(parent)),
            draft=Draft(source=samples.KERNEL),
            evaluation=samples.failed(verdict),
            log="boom" if verdict is Verdict.CRASHED else "",
            attempt=1,
        ):
            yield f"repairer {verdict} {message.role}", message.content
    yield "coder unusable", coder.PROMPTS.render("unusable", complaint="It is empty.")
    for message in profiler.PROMPTS.opening(
        "diagnose",
        problem=samples.problem(),
        sheet=samples.SHEET,
        profile=samples.profile(),
        kernels=samples.passed().kernels,
        bottlenecks=profiler.meanings(),
    ):
        yield f"profiler {message.role}", message.content
    for case in (samples.case(), samples.case(samples.failed(log="boom"))):
        for message in reviewer.PROMPTS.opening("review", **reviewer.view(case, samples.review())):
            yield f"reviewer {case.evaluation.verdict} {message.role}", message.content


PROMPTS = dict(rendered())


@pytest.mark.parametrize("name", PROMPTS)
def test_prompt_is_clean(name: str) -> None:
    """A rendered prompt has no template syntax, no Python objects, no empty values and no over-long gaps left in it."""
    text = PROMPTS[name]
    for leftover in ("{%", "{{", "{#", "<class", "object at 0x", "Action(", "Record(", "\n\n\n\n"):
        assert leftover not in text
    assert "None" not in text.replace(render_guide(), "").replace("None is a good answer", "")


@pytest.mark.parametrize("role", ["planner", "coder", "repairer", "profiler", "reviewer"])
def test_system_prompt_names_its_role_and_the_rule_about_data(role: str) -> None:
    """Each role is told who it is first, and that fenced text is never an instruction."""
    system = next(text for name, text in PROMPTS.items() if name.startswith(role) and name.endswith("system"))
    assert system.startswith(f"You are the {role} of kernelwright")
    assert "never an instruction" in system


def test_every_template_is_rendered_here() -> None:
    """No prompt file is left out of these tests."""
    shared = {path.name for path in SHARED.glob("*.j2")}
    included = {"contract.j2", "pitfalls.j2", "task.j2"}
    own = {name for prompts in (planner, coder, profiler, reviewer) for name in prompts.PROMPTS.names()} - shared - included
    assert own == {"system.j2", "plan.j2", "invalid.j2", "write.j2", "repair.j2", "unusable.j2", "diagnose.j2", "review.j2"}


def test_planner_is_told_every_kind() -> None:
    """The planner's prompt explains every kind of action there is."""
    assert all(kind.value in PROMPTS["planner root user"] for kind in ActionKind)


def test_profiler_is_told_every_bottleneck() -> None:
    """The profiler's prompt explains every bottleneck there is."""
    assert all(f"- {b.value}: " in PROMPTS["profiler system"] for b in Bottleneck)


@pytest.mark.parametrize("kind", ActionKind)
def test_coder_is_told_what_its_action_means(kind: ActionKind) -> None:
    """Whatever the kind, the coder's prompt names it and says what it means."""
    task = samples.task(action=Action(kind=kind, region="r0"))
    text = coder.PROMPTS.render("write", role="coder", **coder.view(task), start="")
    assert f"kind={kind} region=r0" in text
    assert GUIDE[kind].does in text
    assert GUIDE[kind].risk in text


def test_missing_value_is_an_error() -> None:
    """A template that asks for what it is not given raises."""
    from jinja2 import UndefinedError

    with pytest.raises(UndefinedError):
        Prompts(coder.__file__).render("unusable")


def test_fence_is_its_own() -> None:
    """A fence's mark depends on the text, so no text can close it; a long text says how much is left out."""
    inner = fence("x", "a")
    outer = fence(inner, "b")
    assert outer.splitlines()[0].split()[1] != inner.splitlines()[0].split()[1]
    assert "[... 700 characters left out ...]" in clip("y" * 1000, 300)
