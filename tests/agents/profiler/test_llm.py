"""The LLM profiler over real HTTP."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.profiler.llm import LLMProfiler, meanings
from agents.samples import case as samples
from tests.agents.conftest import Ask, Serve
from tests.support.scripted_rules import Rule
from tools.records import Bottleneck, Profile


class Figures:
    """A profiler whose figures are those of the samples."""

    name = "builtin"

    async def diagnose(self, *_: Any) -> Profile:
        """Give the sample profile."""
        return samples.profile(candidate=samples.candidate().id)

    async def diagnose_reference(self, *_: Any) -> Profile:
        """Give the sample profile."""
        return samples.profile()


def diagnosis(value: float = 0.62, **changes: object) -> str:
    """A model's answer."""
    figures = [{"name": "memory_rate", "value": value}]
    said = {"bottleneck": "memory-latency", "evidence": "memory_rate is only 0.62.", "figures": figures}
    return json.dumps({**said, **changes})


async def diagnose(profiler: LLMProfiler) -> Profile:
    """Diagnose the sample candidate."""
    return await profiler.diagnose(samples.problem(), samples.passed(), samples.baselines(), samples.SHEET)


async def test_diagnoses(serve: Serve, model: Ask) -> None:
    """A diagnosis that cites given figures is taken, and where it differs from the rules the profile says so."""
    profile = await diagnose(LLMProfiler(model(serve(Rule(role="profiler", answer=diagnosis()))), Figures()))
    assert profile.bottleneck is Bottleneck.MEMORY_LATENCY
    assert profile.profiler == "scripted"
    assert profile.figures == samples.profile().figures
    assert "The rules say excess-traffic instead" in profile.notes[-1]


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (diagnosis(value=0.9), "it says memory_rate is 0.9, which is 0.62"),
        (diagnosis(figures=[{"name": "made_up", "value": 1}]), "no figure 'made_up'"),
        (diagnosis(figures=[]), "cites no figure"),
        (diagnosis(evidence="It feels slow."), "names none of the figures"),
        (diagnosis(bottleneck="gremlins"), "could not be read"),
        ("It feels slow.", "could not be read"),
    ],
)
async def test_falls_back(serve: Serve, model: Ask, answer: str, fault: str) -> None:
    """A diagnosis that the figures do not bear out is not taken: the rules' stands, and the profile says why."""
    profile = await diagnose(LLMProfiler(model(serve(Rule(answer=answer))), Figures()))
    assert profile.bottleneck is Bottleneck.EXCESS_TRAFFIC
    assert profile.profiler == "builtin"
    assert fault in profile.notes[-1]


async def test_server_in_trouble_does_not_stop_a_profile(serve: Serve, model: Ask) -> None:
    """Where the server does not answer, the rules' diagnosis stands, and the profile says so."""
    profiler = LLMProfiler(model(serve(Rule(status=500)), retries=0), Figures())
    profile = await profiler.diagnose_reference(samples.problem(), samples.baselines(), samples.SHEET)
    assert profile.bottleneck is Bottleneck.EXCESS_TRAFFIC
    assert "did not answer" in profile.notes[-1]


def test_every_bottleneck_is_explained() -> None:
    """The prompt explains each bottleneck of the record, in its own words."""
    assert set(meanings()) == {b.value for b in Bottleneck}
    assert all(len(said) > 10 for said in meanings().values())
