"""The LLM profiler: reads the built-in profiler's figures, and must cite them."""

from __future__ import annotations

import inspect
import itertools
import math

from pydantic import BaseModel

from agents.models import BudgetReached, Model, ModelUnavailable
from agents.profiler.protocol import Profiler
from agents.prompting.frame import Frame
from agents.prompting.render import Prompts
from tools.profiling.ncu import Counters
from tools.profiling.profile import NOT_COUNTED
from tools.records import Baselines, Bottleneck, Evaluation, HardwareSheet, KernelResources, Problem, Profile

PROMPTS = Prompts(__file__)
CITED_WITHIN = 0.01
"""A cited value may differ from the figure by this share: the prompt shows four digits, a model may round once more."""


class Cited(BaseModel):
    """A figure as the model cites it."""

    name: str
    value: float


class Diagnosis(BaseModel):
    """The model's answer."""

    bottleneck: Bottleneck
    evidence: str
    figures: list[Cited]


class LLMProfiler:
    """Lets a model judge the figures of another profiler; where its diagnosis does not hold, that profiler's own stands."""

    def __init__(self, model: Model, builtin: Profiler, frame: Frame | None = None) -> None:
        """Ask `model` about the figures that `builtin` gathers; `frame` says how prompts are made."""
        self._model = model
        self._builtin = builtin
        self._frame = frame or Frame()
        self.name = model.name

    async def diagnose(
        self, problem: Problem, evaluation: Evaluation, baselines: Baselines, sheet: HardwareSheet, counters: Counters = NOT_COUNTED
    ) -> Profile:
        """Explain where the time of a passing candidate goes."""
        profile = await self._builtin.diagnose(problem, evaluation, baselines, sheet, counters)
        return await self._judge(profile, problem, sheet, evaluation.kernels)

    async def diagnose_reference(self, problem: Problem, baselines: Baselines, sheet: HardwareSheet) -> Profile:
        """Explain where the time of the reference goes."""
        profile = await self._builtin.diagnose_reference(problem, baselines, sheet)
        return await self._judge(profile, problem, sheet, ())

    async def _judge(self, profile: Profile, problem: Problem, sheet: HardwareSheet, kernels: tuple[KernelResources, ...]) -> Profile:
        try:
            messages = PROMPTS.opening("diagnose", "profiler", self._frame, **view(profile, problem, sheet, kernels))
            answer = await self._model.ask("profiler", messages, Diagnosis, purpose=f"profile {profile.candidate}")
        except (ModelUnavailable, BudgetReached) as error:
            return _kept(profile, f"The model was not asked or did not answer: {error.what}")
        if not isinstance(answer.parsed, Diagnosis):
            return _kept(profile, f"The model's diagnosis could not be read: {answer.complaint}")
        if fault := _fault(answer.parsed, profile):
            return _kept(profile, f"The model's diagnosis ({answer.parsed.bottleneck}) does not hold: {fault}")
        said, notes = answer.parsed, profile.notes
        if said.bottleneck is not profile.bottleneck:
            notes = (*notes, f"The rules say {profile.bottleneck} instead: {profile.evidence}")
        update = {"bottleneck": said.bottleneck, "evidence": said.evidence.strip(), "profiler": self.name, "notes": notes}
        return profile.model_copy(update=update)


def view(profile: Profile, problem: Problem, sheet: HardwareSheet, kernels: tuple[KernelResources, ...]) -> dict[str, object]:
    """Everything the profiler's prompts show."""
    return {"problem": problem, "sheet": sheet, "profile": profile, "kernels": kernels, "bottlenecks": meanings()}


def meanings() -> dict[str, str]:
    """What each bottleneck means, from the docstrings of the record."""
    lines = [line.strip() for line in inspect.getsource(Bottleneck).splitlines()]
    said: dict[str, str] = {}
    for line, following in itertools.pairwise(lines):
        name = line.partition(" = ")[0]
        if name in Bottleneck.__members__:
            said[Bottleneck[name].value] = following.strip('"')
    return said


def _fault(diagnosis: Diagnosis, profile: Profile) -> str:
    """What in a diagnosis is not borne out by the figures; empty where nothing is."""
    if not diagnosis.figures or not diagnosis.evidence.strip():
        return "it cites no figure."
    for cited in diagnosis.figures:
        given = profile.figure(cited.name)
        if given is None:
            return f"there is no figure {cited.name!r}."
        if not math.isclose(cited.value, given, rel_tol=CITED_WITHIN):
            return f"it says {cited.name} is {cited.value:g}, which is {given:g}."
    if not any(cited.name in diagnosis.evidence for cited in diagnosis.figures):
        return "its explanation names none of the figures it cites."
    return ""


def _kept(profile: Profile, note: str) -> Profile:
    return profile.model_copy(update={"notes": (*profile.notes, f"{note} The built-in profiler's diagnosis stands.")})
