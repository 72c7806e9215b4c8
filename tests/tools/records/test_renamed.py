"""Words of actions and schedules that were renamed."""

from __future__ import annotations

import json

import pytest

from agents.coder.tuning import structure_of
from knowledge.records import Situation, Strategy
from tools.actions.guide import GUIDE
from tools.codegen.ir.schedule import Schedule
from tools.codegen.templates import registry
from tools.cost import choice
from tools.records import Action, ActionKind, OperatorFamily
from tools.records.renamed import FIELDS, MADE, TEMPLATES, VALUES, first_parameters, first_templates, present_parameters
from tools.tuning.cache import Tuned

FIRST_IDS = {
    "da892b7c16bcf499": (ActionKind.LAUNCH, {"programs": "held"}, {"programs": "operand_stationary"}),
    "d4006994133b3c70": (ActionKind.LAUNCH, {"programs": "a_tile"}, {"programs": "data_parallel"}),
    "1978e9d7e46fc5ad": (ActionKind.ALGORITHM, {"algorithm": "staggered"}, {"algorithm": "l2_two_pass"}),
    "84c492bda01706a3": (ActionKind.ALGORITHM, {"algebra": "fold_norm", "sms": 132}, {"algebra": "fold_batch_norm", "sms": 132}),
    "37b73541aab31dcb": (ActionKind.LAYOUT, {"weights": "packed"}, {"weights": "prepacked"}),
    "c6b0c451d9373cf9": (
        ActionKind.ALGORITHM,
        {"made": "window quads; sums first; norms folded; values packed"},
        {"made": "pooling vec4; reduction push-down; folded batch norms; prepacked values"},
    ),
}
"""By the id that the release before the renaming gave: an action of region r0 in the words of then and of now."""
OLD_SCHEDULE = {
    "regions": [{"id": "r0", "nodes": ["a"], "template": "window", "parameters": {"algorithm": "quads", "ELEMENTS": 8}}],
    "early_sums": ["s"],
    "folded_norms": ["n"],
    "packed": ["w"],
}
"""As the release before the renaming wrote one."""


@pytest.mark.parametrize("name", FIRST_IDS)
def test_an_action_is_read_in_todays_words_under_its_first_id(name: str) -> None:
    """What was kept under an action's id, or a plan's, is found whatever the words it was written in."""
    kind, before, now = FIRST_IDS[name]
    read = Action.model_validate_json(json.dumps({"kind": kind, "region": "r0", "parameters": before}))
    assert read == Action(kind=kind, region="r0", parameters=now)
    assert read.id == name


def test_a_schedule_is_read_in_todays_words() -> None:
    """Fields, templates and parameters."""
    schedule = Schedule.model_validate_json(json.dumps(OLD_SCHEDULE))
    assert (schedule.reduction_pushdown, schedule.folded_batch_norms, schedule.prepacked) == (("s",), ("n",), ("w",))
    assert [(one.template, one.parameters) for one in schedule.regions] == [("pooling", {"algorithm": "vec4", "ELEMENTS": 8})]


def test_a_structure_that_was_tuned_is_known_in_todays_words() -> None:
    """The hash is what the release before the renaming made of the same schedule."""
    schedule = Schedule.model_validate(OLD_SCHEDULE)
    assert structure_of(json.dumps(OLD_SCHEDULE)) == structure_of(schedule.model_dump_json()) == "d29fdcd76b753897"


def test_a_strategy_keeps_its_id_and_its_prose() -> None:
    """Parameters and region are read in today's words, title and lesson as they were written."""
    fields = {
        "title": "Launch (programs=held) for matmul",
        "situation": Situation(families=(OperatorFamily.MATMUL,)).model_dump(mode="json"),
        "kind": "launch",
        "lesson": "With programs=held it took half.",
        "source": "run r, candidate c",
    }
    read = Strategy.model_validate({**fields, "parameters": {"programs": "held"}, "region": "matmul+window"})
    assert (read.parameters, read.region) == ({"programs": "operand_stationary"}, "matmul+pooling")
    assert (read.title, read.lesson) == (fields["title"], fields["lesson"])
    assert read.id == Strategy.model_validate(fields).id


def test_what_was_tuned_is_read_in_todays_words() -> None:
    """The tuner's cache holds parameters by region."""
    fields = {"problem": "p", "hardware": "h200", "versions": "", "work": "w", "sizes": [1], "time_us": 1.0, "tier": "estimated"}
    assert Tuned.model_validate({**fields, "parameters": [{"programs": "a_tile"}]}).parameters == ({"programs": "data_parallel"},)


def test_the_first_words_come_back() -> None:
    """Reading today's words changes nothing, and each first word is found from today's."""
    for name, renamed in VALUES.items():
        for first, now in renamed.items():
            assert present_parameters({name: now}) == present_parameters({name: first}) == {name: now}
            assert first_parameters({name: now}) == first_parameters({name: first}) == {name: first}
    assert first_templates("rows+pooling") == "rows+window"


def test_a_word_is_renamed_only_where_it_stands_for_a_choice() -> None:
    """Other parameters may have such values, and numbers stay."""
    same = {"entry": "held", "BLOCK_M": 64, "algorithm": "split", "weights": "every_call"}
    assert present_parameters(same) == first_parameters(same) == same


def test_todays_words_are_the_ones_in_use() -> None:
    """The guide and the templates know each new word and no old one, and the cost model's phrase has the name that is read here."""
    parameters = [one for meaning in GUIDE.values() for one in meaning.parameters]
    values = {(one.name, word) for one in parameters for word in one.values.replace(";", ",").split(", ")}
    for name, renamed in VALUES.items():
        assert {(name, now) for now in renamed.values()} <= values
        assert not {(name, first) for first in renamed} & values
    assert set(TEMPLATES.values()) <= {template.name for template in registry.TEMPLATES}
    assert set(FIELDS.values()) <= set(Schedule.model_fields)
    assert choice.MADE == MADE
