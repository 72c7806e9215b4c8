"""What keeps a fast kernel from being delivered is told to those who can mend it."""

from __future__ import annotations

from agents.coder import llm as coder
from agents.planner import llm as planner
from agents.reviewer.builtin import review
from agents.reviewer.protocol import ReviewCase
from agents.samples.case import briefing, candidate, case, task
from tests.agents.reviewer.cases import passed, timing
from tools.records import Tier

UNSEALED = "its host code draws random numbers (aten.rand.default)"


def test_planner_and_coder_read_why_the_parent_would_not_be_delivered() -> None:
    """Both prompts hold the sentence where there is one, and no word about it where there is none."""
    doubt = passed(timing(50.0, unsealed=UNSEALED)).doubt
    parent = candidate()
    for said in ("", doubt):
        asked = planner.view(briefing(parent=parent.id, doubt=said), 1)
        written = coder.view(task(parent).model_copy(update={"doubt": said}))
        texts = planner.PROMPTS.render("plan", **asked), coder.PROMPTS.render("write", **written, start="", language="triton")
        assert [UNSEALED in text for text in texts] == [bool(said)] * 2


def test_the_built_in_reviewer_is_concerned() -> None:
    """A time that only its own process vouches for is a concern with its reason; a bracketed one is none."""
    for tier, is_concern in ((Tier.IN_PROCESS, True), (Tier.BRACKETED, False)):
        found: ReviewCase = case(passed(timing(50.0, unsealed=UNSEALED, tier=tier)))
        concerns = review(found).concerns
        assert any(UNSEALED in concern for concern in concerns) is is_concern
