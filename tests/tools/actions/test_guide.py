"""Every action is explained once, with the parameters that schedules use."""

from __future__ import annotations

import pytest

from tools.actions import GUIDE, describe, render_guide
from tools.codegen.ir.schedule import LIBRARY
from tools.codegen.templates.registry import TEMPLATES, knobs_of
from tools.records import Action, ActionKind


@pytest.mark.parametrize("kind", ActionKind)
def test_every_kind_is_explained(kind: ActionKind) -> None:
    """Each kind of action has a meaning with no part left empty."""
    meaning = GUIDE[kind]
    assert all((meaning.title, meaning.does, meaning.helps, meaning.parameters, meaning.risk))


def test_schedule_parameters_are_named_under_their_kind() -> None:
    """Each parameter a schedule can hold is explained under the kind of action that changes it."""
    for knobs in (knobs_of(LIBRARY), *(template.knobs for template in TEMPLATES)):
        for name, knob in knobs.items():
            assert name in {parameter.name for parameter in GUIDE[knob.kind].parameters}, (name, knob.kind)


def test_no_parameter_is_explained_in_vain() -> None:
    """Each parameter the guide names is one that a schedule or an action of the built-in coder uses."""
    used = {(knob.kind, name) for knobs in (knobs_of(LIBRARY), *(template.knobs for template in TEMPLATES)) for name, knob in knobs.items()}
    used |= {
        (ActionKind.FUSION, "scope"),
        (ActionKind.FUSION, "sms"),
        (ActionKind.ALGORITHM, "algebra"),
        (ActionKind.ALGORITHM, "choice"),
        (ActionKind.ALGORITHM, "implementation"),
        (ActionKind.ALGORITHM, "sms"),
        (ActionKind.LAUNCH, "capture"),
        (ActionKind.LAUNCH, "launches"),
        (ActionKind.LAUNCH, "tune"),
        (ActionKind.REWRITE, "attempt"),
        (ActionKind.REWRITE, "idea"),
    }
    assert {(kind, parameter.name) for kind, meaning in GUIDE.items() for parameter in meaning.parameters} == used


def test_describe_names_region_and_value() -> None:
    """A described action says where it applies and what its value means."""
    text = describe(Action(kind=ActionKind.LAUNCH, region="r1", parameters={"num_warps": 8}))
    assert "r1" in text
    assert "num_warps=8 (warps a program)" in text


def test_rendered_guide_holds_every_kind() -> None:
    """The guide as text names every kind."""
    assert all(f"{kind}: " in render_guide() for kind in ActionKind)
