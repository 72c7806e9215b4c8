"""Which calls are made."""

from __future__ import annotations

import pytest

from tools.evaluation import EvaluationRequest
from tools.evaluation.supervisor.checking.call_plan import Stage, plan_calls
from tools.evaluation.supervisor.on_device import sizes_on_device
from tools.evaluation.supervisor.provenance import named, provenance
from tools.evaluation.trusted.distributions import BATTERY
from tools.evaluation.wire.distributions import AS_MADE, HARD, NON_FINITE, TIES
from tools.evaluation.wire.size_classes import LARGE_BYTES, MIDDLE_BYTES
from tools.hardware import load_sheet
from tools.records import Launch, PrecisionPolicy, Problem


def test_every_call_has_a_seed_of_its_own(problem: Problem) -> None:
    """No two calls, of one plan or of two, share a seed."""
    calls = [call for _ in range(3) for call in plan_calls(problem, 0, "search", battery=True).calls]

    assert len({call.seed for call in calls}) == len(calls)


def test_first_call_runs_twice_and_others_once(problem: Problem) -> None:
    """The first call is repeated with another poison."""
    calls = plan_calls(problem, 0, "search", battery=True).calls

    assert [call.slots for call in calls] == [2] + [1] * (len(calls) - 1)
    assert [call.distribution for call in calls[:3]] == [AS_MADE] * 3


def test_confirmation_tries_the_whole_battery(problem: Problem) -> None:
    """A confirmation makes more fresh calls, and every distribution."""
    calls = plan_calls(problem, 0, "confirm", battery=True).calls

    assert {call.distribution for call in calls} == {AS_MADE, *BATTERY}
    assert sum(call.distribution == AS_MADE and not call.follows for call in calls) == 5


def test_a_call_differs_from_a_fresh_one_in_a_few_elements(problem: Problem) -> None:
    """At every size a call follows a fresh one with nearly its inputs, shares its limits, and says so where seeds are published."""
    calls = plan_calls(problem, 1, "search", battery=True).calls
    place = next(number for number, call in enumerate(calls) if call.follows)

    assert calls[place - 1].distribution == calls[place].distribution == AS_MADE
    assert calls[place - 1].group == calls[place].group
    assert calls[place].published.distribution == "as made, a few elements changed"


def test_search_always_tries_the_hard_ones_and_others_by_chance(problem: Problem) -> None:
    """The first size meets every hard distribution, each other size the first of them, and all of them some by chance."""
    drawn = [{call.distribution for call in plan_calls(problem, place, "search", battery=True).calls} for place in (0, 1, 2, 3) * 4]

    assert all(set(HARD) <= names for names in drawn[::4])
    assert all("low bits" in names for names in drawn)
    assert len(set(map(frozenset, drawn))) > 3


def test_problem_as_written_meets_a_shorter_list(problem: Problem) -> None:
    """Where inputs are large, two distributions in the search; a confirmation tries all of them where they are not very large."""
    tried = {
        stage: [c.distribution for c in plan_calls(problem, 3, stage, battery=False).calls if c.distribution != AS_MADE]
        for stage in ("search", "confirm")
    }

    assert len(tried["search"]) == 2
    assert tried["search"][0] == "low bits"
    assert set(tried["confirm"]) == set(BATTERY)


def test_non_finite_inputs_are_tried_where_the_policy_asks(problem: Problem) -> None:
    """NaN and infinities are part of the battery on request alone."""
    asked = problem.model_copy(update={"policy": PrecisionPolicy(non_finite=True)})

    assert NON_FINITE in {call.distribution for call in plan_calls(asked, 0, "search", battery=True).calls}
    assert NON_FINITE not in {call.distribution for call in plan_calls(problem, 0, "confirm", battery=True).calls}


def test_integer_outputs_meet_no_ties(problem: Problem) -> None:
    """Where outputs are indices, inputs with equal elements are left out."""
    output = problem.abi.outputs[0].model_copy(update={"dtype": "int64"})
    indices = problem.model_copy(update={"abi": problem.abi.model_copy(update={"outputs": (output,)})})

    assert not {call.distribution for call in plan_calls(indices, 0, "confirm", battery=True).calls} & set(TIES)


def test_parameters_are_moved_at_every_size_but_the_first(problem: Problem) -> None:
    """Default parameters are kept once and shaken elsewhere."""
    assert plan_calls(problem, 0, "search", battery=True).shake is None
    assert plan_calls(problem, 1, "search", battery=True).shake is not None


def test_huge_problem_gets_one_fresh_call(problem: Problem) -> None:
    """Inputs of gigabytes pass through the host's memory: one call, run twice, is what it gets."""
    argument = problem.abi.inputs[0].model_copy(update={"shape": (1 << 14, 1 << 15)})
    huge = problem.model_copy(update={"abi": problem.abi.model_copy(update={"arguments": (argument,)})})

    assert [call.slots for call in plan_calls(huge, 0, "search", battery=False).calls] == [2]


def test_provenance_ignores_memory_being_prepared() -> None:
    """Clearing a buffer makes no candidate a library's; a product does."""
    own = Launch(kind="triton", name="kernel", nbytes=1)
    clear = Launch(kind="library", name="aten.zeros.default", nbytes=1)
    product = Launch(kind="library", name="aten.mm.default", nbytes=1)

    assert provenance(named([clear, own])) == "authored"
    assert provenance(named([product, own])) == "mixed"
    assert provenance(named([clear, product])) == "library"
    assert provenance(named([clear])) == "unknown"


def of_size(problem: Problem, nbytes: int) -> Problem:
    """The same problem with inputs that are claimed to be larger."""
    rows = nbytes // 4
    inputs = tuple(spec.model_copy(update={"shape": (rows,)}) for spec in problem.abi.inputs)
    return problem.model_copy(update={"abi": problem.abi.model_copy(update={"arguments": inputs})})


@pytest.mark.parametrize(("nbytes", "counts"), [(1 << 20, (3, 2)), (MIDDLE_BYTES, (1, 1)), (LARGE_BYTES, (1, 0))])
def test_large_problems_get_fewer_calls(problem: Problem, nbytes: int, counts: tuple[int, int]) -> None:
    """What passes through the host's memory is made less often the larger it is, but once and twice poisoned at any size."""
    calls = plan_calls(of_size(problem, nbytes), 0, "search", battery=False).calls

    fresh = [call for call in calls if call.distribution == AS_MADE and not call.follows]
    assert (len(fresh), sum(call.follows for call in calls)) == counts
    assert fresh[0].slots == 2


@pytest.mark.parametrize("stage", ["search", "confirm"])
def test_a_large_problem_as_written_is_checked_to_confirm(problem: Problem, stage: Stage) -> None:
    """In a search its timed calls judge it; a confirmation checks it before, and a problem without variants is always checked."""
    large, small = of_size(problem, LARGE_BYTES), of_size(problem, 4096)
    request = EvaluationRequest(problem=large, variants=(small,), candidate="c", source="", target=load_sheet("h200"), stage=stage)

    assert sizes_on_device(request) == ((small,) if stage == "search" else (small, large))
    assert sizes_on_device(request.model_copy(update={"variants": ()})) == (large,)
