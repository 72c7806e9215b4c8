"""The mixed coder: the built-in one for what it can do, a language model for everything else."""

from __future__ import annotations

from collections.abc import Awaitable

from agents.coder.builtin import BuiltinCoder
from agents.coder.llm import LLMCoder
from agents.coder.protocol import CodingTask, Draft, Refusal
from agents.models import Model
from agents.prompting.frame import Frame
from agents.writing.bench import Bench
from tools.records import Action, Candidate, Evaluation, HardwareSheet, Problem


class MixedCoder:
    """Does an action by construction where it is among the built-in coder's options, and by the model where it is not.

    An action by construction is right more often and costs nothing; once the model has changed a source there is no schedule
    any more, and its children are the model's too.
    """

    free = True

    def __init__(self, model: Model, builtin: BuiltinCoder, frame: Frame | None = None) -> None:
        """Take both coders' makings."""
        self._builtin = builtin
        self._llm = LLMCoder(model, builtin, frame)
        self.name = f"builtin+{model.name}"

    @property
    def bench(self) -> Bench:
        """Who carries out the calls of the model's tools."""
        return self._llm.bench

    @bench.setter
    def bench(self, bench: Bench) -> None:
        self._llm.bench = bench

    async def begin(self, problem: Problem, sheet: HardwareSheet, trace_s: float) -> None:
        """Have the built-in coder begin."""
        await self._builtin.begin(problem, sheet, trace_s)

    async def options(self, problem: Problem, parent: Candidate | None, sheet: HardwareSheet) -> tuple[Action, ...]:
        """List what is done by construction; anything else is allowed too."""
        return await self._builtin.options(problem, parent, sheet)

    async def limits(self, problem: Problem) -> tuple[str, ...]:
        """None: a model may try anything."""
        return ()

    async def write(self, task: CodingTask) -> Draft | Refusal:
        """Apply a listed action by construction, any other by the model."""
        listed = await self.options(task.problem, task.parent, task.sheet)
        if task.plan.action.id not in {action.id for action in listed}:
            return await self._llm.write(task)
        draft = await self._builtin.write(task)
        return draft if isinstance(draft, Draft) else await self._after(draft, self._llm.write(task))

    async def repair(self, task: CodingTask, draft: Draft, evaluation: Evaluation, attempt: int) -> Draft | Refusal:
        """Mend by construction where that can be, else by the model."""
        if draft.schedule is None:
            return await self._llm.repair(task, draft, evaluation, attempt)
        mended = await self._builtin.repair(task, draft, evaluation, attempt)
        return mended if isinstance(mended, Draft) else await self._after(mended, self._llm.repair(task, draft, evaluation, attempt))

    @staticmethod
    async def _after(refusal: Refusal, other: Awaitable[Draft | Refusal]) -> Draft | Refusal:
        """Let the model try, and say what the built-in coder refused."""
        result = await other
        if isinstance(result, Refusal):
            return result
        return result.model_copy(update={"notes": (*result.notes, f"Written by the model, because: {refusal.reason}")})
