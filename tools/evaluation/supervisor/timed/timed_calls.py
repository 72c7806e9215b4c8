"""What the oracle's word on timed calls comes to: the first of them is not timed."""

from __future__ import annotations

from tools.evaluation.supervisor.checking.correctness import Outcome, complaint, size_of, worst_errors, wrong_outputs
from tools.evaluation.wire.jobs.oracle import OracleAnswer
from tools.records import Correctness, Problem, Verdict

ORDER = "depends on how equal elements are put in order"


def not_judged(answer: OracleAnswer) -> list[str]:
    """Say what of them was left out of the judgement."""
    return [f"Of timed calls, up to {answer.left_out:.1%} of an output {ORDER}, and was not judged."] if answer.left_out else []


def wrong_calls(answer: OracleAnswer, problem: Problem) -> Outcome | None:
    """Refuse what is wrong in one of them, and what cannot be judged in any; None where they are right."""
    wrong = [call for call in answer.calls if not all(error.passed for error in call.outputs)]
    if not wrong:
        if any(call.judged for call in answer.calls if call.call):
            return None
        return Outcome(Verdict.INFRASTRUCTURE, notes=[f"No timed call could be judged: all of its outputs {ORDER}."])
    size = size_of(problem)
    note = f"{len(wrong)} of {len(answer.calls)} timed calls that were checked gave a wrong answer at {size}."
    errors = worst_errors(answer.calls)
    shown = wrong_outputs((problem,), tuple(call.model_copy(update={"call_plan": 0}) for call in wrong))
    correctness = Correctness(outputs=errors, calls=len(answer.calls), sizes=(size,), executor="gpu", wrong=shown)
    return Outcome(Verdict.WRONG, None, correctness, [note, *(complaint(error, size) for error in errors if not error.passed)])
