"""What the cost model expects, in the built-in planner's choice."""

from __future__ import annotations

import pytest

from agents.planner.builtin import BuiltinPlanner
from agents.records.expectation import Expectation
from agents.samples import case as samples
from knowledge.records import Strategy
from tools.cost.choice import choice_action
from tools.records import Action, ActionKind, Bottleneck, Verdict

PLANNER = BuiltinPlanner()
CHOICES = tuple(choice_action(number) for number in (1, 2, 3))
TUNE = Action(kind=ActionKind.LAUNCH, region="r0", parameters={"tune": 8})
EACH = Action(kind=ActionKind.FUSION, region="r0+r1", parameters={"scope": "each", "sms": 132})
PRECISION = Action(kind=ActionKind.PRECISION, region="r0", parameters={"precision": "tf32x3"})
OPTIONS = (*samples.OPTIONS, EACH, PRECISION, TUNE, *reversed(CHOICES))


@pytest.mark.parametrize("bottleneck", list(Bottleneck))
async def test_choices_come_before_anything_else(bottleneck: Bottleneck) -> None:
    """Whatever limits the reference, the model's first choice is tried first and its second is in the first batch of two."""
    plans = await PLANNER.plan(samples.briefing(options=OPTIONS, profile=samples.profile(bottleneck)), 2)
    assert [plan.action for plan in plans] == list(CHOICES[:2])


@pytest.mark.parametrize("bottleneck", list(Bottleneck))
async def test_tuning_comes_before_single_numbers(bottleneck: Bottleneck) -> None:
    """Where no choice is left, the tuner is asked before one number after another is turned."""
    numbers = (*samples.TILING, *samples.LAUNCH, TUNE)
    (plan,) = await PLANNER.plan(samples.briefing(options=numbers, profile=samples.profile(bottleneck)), 1)
    assert plan.action == TUNE


async def test_the_words_of_the_model_are_in_the_rationale() -> None:
    """A plan says what the model expects, that it is an estimate, and what it knows nothing of."""
    words = "the cost model expects about 963 µs on the device (estimated); it knows nothing of r1, which has the coder's own first values"
    expected = {CHOICES[0].id: Expectation(words=words)}
    (plan,) = await PLANNER.plan(samples.briefing(options=OPTIONS, expected=expected), 1)
    assert words in plan.rationale


async def test_a_modelled_gain_orders_steps_of_one_kind() -> None:
    """Of two tile sizes the one that the model expects more of is taken, even against the bottleneck's direction."""
    slow, fast = samples.TILING[1], samples.TILING[2]
    expected = {slow.id: Expectation(words="slower", gain=0.6), fast.id: Expectation(words="faster", gain=1.8)}
    profile = samples.profile(Bottleneck.PARALLELISM)
    (prior,) = await PLANNER.plan(samples.briefing(options=(slow, fast), profile=profile), 1)
    (plan,) = await PLANNER.plan(samples.briefing(options=(slow, fast), profile=profile, expected=expected), 1)
    assert (prior.action, plan.action) == (slow, fast)


async def test_a_promise_counts_up_to_the_models_error() -> None:
    """A gain of a hundred counts no more than one of three: beyond its error the model has nothing to say."""
    one, other = samples.TILING[1], samples.TILING[2]
    wild = {one.id: Expectation(words="", gain=3.0), other.id: Expectation(words="", gain=300.0)}
    plans = await PLANNER.plan(samples.briefing(options=(one, other), expected=wild), 1)
    assert plans[0].action == (await PLANNER.plan(samples.briefing(options=(one, other)), 1))[0].action


async def test_a_slow_choice_gives_way_to_structure() -> None:
    """Where the first choice was slower and the next is expected to be far slower, a fusion has its turn."""
    done = samples.tried(CHOICES[0], 0.4, Verdict.PASS)
    expected = {action.id: Expectation(words="slower", gain=0.2) for action in CHOICES[1:]}
    (plan,) = await PLANNER.plan(samples.briefing(options=OPTIONS, tried=(done,), expected=expected), 1)
    assert plan.action.kind is ActionKind.FUSION


MADE = ("rows registers", "rows online", "rows looped")
EXPECTED = {action.id: Expectation(words="", made=made) for action, made in zip(CHOICES, MADE, strict=True)}


def taught(made: str, gain: float = 2.4) -> Strategy:
    """What memory keeps of a choice elsewhere."""
    return samples.strategy(ActionKind.ALGORITHM, gain, parameters={"implementation": "modelled", "made": made})


async def test_what_a_choice_gained_elsewhere_does_not_reorder_the_model() -> None:
    """How much a choice gained says how slow its reference was: what makes the same cites it, and the order stays the model's."""
    known = taught(MADE[2])
    seen = samples.briefing(options=CHOICES, recalled=(samples.recalled(known, score=0.95),), expected=EXPECTED)
    plans = await PLANNER.plan(seen, 3)
    assert [(plan.action, plan.strategies) for plan in plans] == [(CHOICES[0], ()), (CHOICES[1], ()), (CHOICES[2], (known.id,))]


async def test_what_failed_elsewhere_speaks_against_the_choice_that_makes_the_same() -> None:
    """A warning of wrong results moves the choice that it is about behind the others; one of a slow kernel elsewhere does not."""
    slow = taught(MADE[0], 0.3)
    wrong = slow.model_copy(update={"trials": tuple(t.model_copy(update={"verdict": Verdict.WRONG, "gain": None}) for t in slow.trials)})
    first = []
    for one in (slow, wrong):
        warning = samples.recalled(one, -0.1, warning=True)
        first.append((await PLANNER.plan(samples.briefing(options=CHOICES, recalled=(warning,), expected=EXPECTED), 3))[0].action)
    assert first == [CHOICES[0], CHOICES[1]]


async def test_the_number_of_a_choice_teaches_nothing() -> None:
    """What older memories keep of a number is cited by no plan and moves none."""
    known = samples.strategy(ActionKind.ALGORITHM, 9.0, parameters=CHOICES[2].parameters)
    plans = await PLANNER.plan(samples.briefing(options=CHOICES, recalled=(samples.recalled(known, score=0.95),), expected=EXPECTED), 3)
    assert [(plan.action, plan.strategies) for plan in plans] == [(action, ()) for action in CHOICES]


async def test_steps_on_schedules_are_not_invented() -> None:
    """Advice to tune, or to take a choice of the cost model, makes no plan where the coder lists no such step."""
    advice = [samples.recalled(samples.strategy(one.kind, 3.0, parameters=one.parameters), score=0.95) for one in (TUNE, *CHOICES)]
    plans = await PLANNER.plan(samples.briefing(options=(), free=True, recalled=tuple(advice)), 12)
    assert plans
    assert not any({"tune", "choice"} & plan.action.parameters.keys() for plan in plans)
