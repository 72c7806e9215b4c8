"""What a step really was, whatever its plan was called."""

from __future__ import annotations

import pytest

from agents.coder.difference import changed_action
from agents.samples.sources import KERNEL
from tools.codegen import Region, Schedule
from tools.records import Action, ActionKind, Candidate
from tools.records.renamed import Value

TEXT = KERNEL.replace("BLOCK_N=triton.next_power_of_2(x.shape[1])", "BLOCK_N=1024, num_warps=4")
WARPS = Action(kind=ActionKind.LAUNCH, region="softmax_kernel", parameters={"num_warps": 8})


def made(source: str = TEXT, **fields: object) -> Candidate:
    """A candidate of free text."""
    return Candidate.model_validate({"problem": "p", "parent": "root", "action": WARPS, "source": source, "coder": "m", **fields})


def test_a_repair_of_another_number_is_credited_to_that_number() -> None:
    """Planned were warps; in the end the tile was changed and the warps were not: the step was a tiling."""
    child = made(TEXT.replace("BLOCK_N=1024", "BLOCK_N=512"), repairs=1)
    assert changed_action(WARPS, made(), child) == Action(kind=ActionKind.TILING, region="softmax_kernel", parameters={"BLOCK_N": 512})


def test_a_number_that_was_planned_is_credited_with_what_else_changed() -> None:
    """Where the planned number and another one changed, both are named."""
    changed = changed_action(WARPS, made(), made(TEXT.replace("1024", "512").replace("num_warps=4", "num_warps=8")))
    assert changed == WARPS.model_copy(update={"parameters": {"BLOCK_N": 512, "num_warps": 8}})


def test_what_changed_nothing_has_no_name() -> None:
    """The parent's text again is no step, and neither is another text without the number that the plan was about."""
    assert changed_action(WARPS, made(), made()) is None
    assert changed_action(WARPS, made(), made(TEXT.replace("tl.exp", "tl.exp2"))) is None


def test_a_step_in_words_stays_what_it_was() -> None:
    """A change of the text is the planned step where that names no number, and where the text has the number it names."""
    fusion = Action(kind=ActionKind.FUSION, region="softmax_kernel")
    assert changed_action(fusion, made(), made(TEXT.replace("tl.exp", "tl.exp2"))) == fusion
    both = TEXT.replace("tl.exp", "tl.exp2").replace("num_warps=4", "num_warps=8")
    assert changed_action(WARPS, made(), made(both)) == WARPS


@pytest.mark.parametrize(("parameters", "idea", "known"), [({"attempt": 3}, "chunks.", "chunks."), ({"idea": "a scan"}, "", "a scan")])
def test_a_design_is_its_idea(parameters: dict[str, Value], idea: str, known: str) -> None:
    """Memory knows a rewrite by what its writer said of it, not by its number in the run; without an idea it has no name."""
    action = Action(kind=ActionKind.REWRITE, region="f", parameters=parameters)
    assert changed_action(action, None, made(idea=idea)) == action.model_copy(update={"parameters": {"idea": known}})
    assert changed_action(Action(kind=ActionKind.REWRITE, region="f", parameters={"attempt": 3}), None, made()) is None


def test_a_smaller_value_that_mended_a_schedule_is_what_is_credited() -> None:
    """A draft that was too large was mended by a smaller value of the same parameter: that value was tried, and no other."""
    schedule = Schedule(regions=(Region(id="r0", nodes=("softmax",), template="rows", parameters={"ROWS": 2, "num_warps": 4}),))
    action = Action(kind=ActionKind.TILING, region="r0", parameters={"ROWS": 8})
    child = made(schedule=schedule.model_dump_json(), repairs=1)
    assert changed_action(action, None, child) == action.model_copy(update={"parameters": {"ROWS": 2}})
    assert changed_action(action, None, child.model_copy(update={"repairs": 0})) == action
