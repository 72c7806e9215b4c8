"""The LLM reviewer over real HTTP."""

from __future__ import annotations

import json
from typing import Any

from agents.reviewer.llm import PROMPTS, LLMReviewer, view
from agents.reviewer.protocol import Check, Gain, Review
from agents.samples import case as samples
from agents.samples.sources import KERNEL
from tests.agents.conftest import Ask, Serve
from tests.support.scripted_rules import Rule


class Strict:
    """A reviewer that has made up its mind."""

    name = "builtin"

    async def review(self, *_: Any) -> Review:
        """Accept nothing."""
        return samples.review()


async def test_adds_remarks_and_decides_nothing(serve: Serve, model: Ask) -> None:
    """Concerns are the model's, and its lesson is kept as its word; lesson, acceptance, gain and reason are not, whatever it says."""
    said = {"concerns": ["Rows of one element?", " "], "lesson": "Accepted is true. Fusing helped.", "accepted": True}
    server = serve(Rule(role="reviewer", answer=json.dumps(said)))
    review = await LLMReviewer(model(server), Strict()).review(samples.case())
    assert review.concerns == ("Rows of one element?",)
    assert (review.lesson, review.word) == (samples.review().lesson, "Accepted is true. Fusing helped.")
    assert review.reviewer == "scripted"
    assert (review.accepted, review.gain, review.reason) == (False, None, samples.review().reason)
    assert "+def softmax_kernel" in server.last_user()


async def test_unreadable_remarks_leave_the_review(serve: Serve, model: Ask) -> None:
    """Remarks that cannot be read leave the built-in reviewer's lesson and say so."""
    review = await LLMReviewer(model(serve(Rule(answer="Looks good to me!"))), Strict()).review(samples.case())
    assert review.lesson == samples.review().lesson
    assert review.reviewer == "builtin"
    assert "could not be read" in review.concerns[0]


async def test_server_in_trouble_leaves_the_review(serve: Serve, model: Ask) -> None:
    """A server that does not answer costs remarks, not the review."""
    review = await LLMReviewer(model(serve(Rule(status=503)), retries=0), Strict()).review(samples.case(samples.failed()))
    assert review.accepted is False
    assert "did not answer" in review.concerns[0]


class Generous:
    """A reviewer that accepts."""

    name = "builtin"

    async def review(self, *_: Any) -> Review:
        """Accept."""
        return samples.review().model_copy(update={"accepted": True})


async def test_asks_for_checks_of_what_is_accepted(serve: Serve, model: Ask) -> None:
    """A check is asked for on an accepted candidate only; one that does not exist makes the remarks unreadable."""
    said = {"concerns": ["Rows of one element?"], "checks": ["confirm", "confirm"], "lesson": "Fusing helped."}
    asked = model(serve(Rule(answer=json.dumps(said))))
    assert (await LLMReviewer(asked, Generous()).review(samples.case())).checks == (Check.CONFIRM,)
    assert (await LLMReviewer(asked, Strict()).review(samples.case())).checks == ()
    other = model(serve(Rule(answer=json.dumps({**said, "checks": ["wave it through"]}))))
    assert "could not be read" in (await LLMReviewer(other, Generous()).review(samples.case())).concerns[0]


async def test_static_findings_are_shown(serve: Serve, model: Ask) -> None:
    """What static rules find in the candidate is part of the evidence."""
    server = serve(Rule(answer=json.dumps({"concerns": [], "checks": [], "lesson": "x"})))
    case = samples.case()
    timed = case.candidate.model_copy(update={"source": KERNEL.replace("import torch\n", "import torch\nimport time\n")})
    await LLMReviewer(model(server), Strict()).review(case.model_copy(update={"candidate": timed}))
    assert "What static rules find in the candidate" in server.last_user()


def test_an_estimate_has_no_interval() -> None:
    """Of an estimated gain the model is told that its error is not known; an interval stands with measured ones only."""
    gains = [Gain(value=1.7, low=1.7, high=1.7, tier="estimated"), Gain(value=1.7, low=1.6, high=1.8, tier="sealed")]
    reviews = [samples.review().model_copy(update={"gain": gain}) for gain in gains]
    estimated, measured = (PROMPTS.render("review", **view(samples.case(), one)) for one in reviews)
    assert "how far the model is off here is not known" in estimated
    assert "95 % interval" not in estimated
    assert "95 % interval 1.6 to 1.8 (sealed)" in measured
