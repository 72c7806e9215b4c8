"""What memory is taught of a plan beyond its verdict and gain, and who rewrites its lessons."""

from __future__ import annotations

from pydantic import ValidationError

from agents import AgentTeam
from agents.lessons.llm import ModelLessonWriter
from agents.reviewer.protocol import Review
from agents.sources.triton import kernel_excerpt
from graphs.run.context import Services
from knowledge.lessons.writers import LessonWriter
from tools.codegen.ir.schedule import Schedule
from tools.errors import KernelwrightError
from tools.records import Candidate, Evaluation

EXCERPT = 1800
"""Characters of a kernel that memory keeps of what it learnt from."""


async def close_lessons(services: Services) -> tuple[str, ...]:
    """Tell memory that the run has ended; say what it rewrote. A run has its result already, so a failure is said and no more."""
    try:
        update = await services.memory.finish(services.run, lesson_writer(services.team))
    except KernelwrightError as error:
        return (f"Memory could not go over its lessons: {error.what} {error.mend}",)
    if update is None:
        return services.memory.news()
    changed = f"{len(update.rewritten)} lessons rewritten, {len(update.merged)} merged"
    return (f"Memory went over {update.outcomes} outcomes ({update.by}): {changed}.", *update.notes, *services.memory.news())


def lesson_writer(team: AgentTeam) -> LessonWriter | None:
    """The team's language model, or None: then the statistics write."""
    return ModelLessonWriter(team.models[0]) if team.models else None


def region_kind(candidate: Candidate, region: str) -> str:
    """Templates of the regions an action changed, as the candidate's schedule has them; empty where there is no schedule."""
    if candidate.schedule is None:
        return ""
    try:
        schedule = Schedule.model_validate_json(candidate.schedule)
    except ValidationError:
        # another coder's own form of schedule says nothing about ours
        return ""
    found = [schedule.region(name) for name in region.split("+")]
    return "+".join(dict.fromkeys(one.template for one in found if one is not None))


def excerpt_of(candidate: Candidate, region: str, judged: Review) -> str:
    """The kernel that an accepted candidate came to, for memory to show; nothing of the others, nor of Triton that is too long."""
    return kernel_excerpt(candidate.source, region, EXCERPT) if judged.accepted else ""


def error_cost(evaluation: Evaluation) -> float | None:
    """Worst relative L2 error over the reference's own; None where nothing was judged or the reference is exact."""
    if evaluation.correctness is None:
        return None
    ratios = [o.relative_l2 / o.reference_relative_l2 for o in evaluation.correctness.outputs if o.reference_relative_l2]
    return max(ratios, default=None)
