"""Merging, ageing and pruning."""

from datetime import UTC, datetime, timedelta
from typing import Any

from knowledge.records import Situation, StrategyState
from knowledge.store import KnowledgeBase
from tests.knowledge.conftest import MakeBase, MakeOutcome
from tools.records import ActionKind


def later(days: int) -> Any:
    """A clock that runs ahead."""
    return lambda: datetime.now(UTC) + timedelta(days=days)


async def twins(base: KnowledgeBase, make: MakeOutcome, situation: Situation, gains: tuple[float, float]) -> list[str]:
    """One action learnt on two classes of shapes."""
    made = []
    for shapes, gain in zip(("many-short", "many-long"), gains, strict=True):
        here = situation.model_copy(update={"shapes": shapes})
        made += await base.learn(make(run=shapes, situation=here, gain=gain, accepted=gain > 1))
    return made


async def test_new_situations_make_new_entries_and_duplicates_merge(
    base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation
) -> None:
    """Two classes of shapes are two entries; as their records agree they become one, with the trials of both and a reason."""
    old, young = await twins(base, make_outcome, situation, (1.5, 1.45))
    (merged,) = base.merge()
    assert (merged.id, merged.into) == (young, old)
    assert len(base.get(old).trials) == 2
    assert base.get(young).state is StrategyState.RETIRED
    assert "near-duplicate" in base.changes()[0].reason


async def test_entries_whose_records_disagree_stay_apart(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """What gains here and loses there is two lessons, however alike the words."""
    await twins(base, make_outcome, situation, (1.5, 0.8))
    assert base.merge() == ()


async def test_a_merge_can_be_taken_back(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """Both entries have their own trials again, and both are recalled."""
    await twins(base, make_outcome, situation, (1.5, 1.45))
    before = base.all()
    base.merge()
    base.revert(base.changes()[0].change, "they are not the same")
    assert base.all() == before


async def test_a_dry_run_changes_nothing(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """It names what would be merged and leaves the log alone."""
    await twins(base, make_outcome, situation, (1.5, 1.45))
    events = base.stats()["events"]
    assert len(base.merge(dry_run=True)) == 1
    assert base.stats()["events"] == events


async def test_evidence_loses_weight_with_age_and_sooner_with_other_versions(
    make_base: MakeBase, make_outcome: MakeOutcome, situation: Situation
) -> None:
    """A year halves what a trial says; a new compiler does it in two months; recall gives the reason."""
    base = make_base()
    await base.learn(make_outcome(gain=3.0, versions={"triton": "3.6.0"}))
    (now,) = await base.recall(situation)
    (old,) = await make_base(clock=later(200)).recall(situation)
    await base.learn(
        make_outcome(run="run2", plan="p2", situation=situation.model_copy(update={"backend": "cuda"}), versions={"triton": "3.9.1"})
    )
    (stale,) = await make_base(clock=later(200)).recall(situation)
    assert now.score > old.score > stale.score
    assert "by age" in old.why
    assert "1 with other versions" in stale.why


async def test_a_warning_fades_and_is_pruned(
    make_base: MakeBase, make_outcome: MakeOutcome, situation: Situation, failed: dict[str, Any]
) -> None:
    """What failed is warned of, a year later no more, and pruning then retires it with its reason."""
    base = make_base()
    for run in ("r1", "r2"):
        await base.learn(make_outcome(run=run, **failed))
    assert [found.warning for found in await base.recall(situation)] == [True]
    aged = make_base(clock=later(400))
    assert await aged.recall(situation) == ()
    assert base.prune() == ()
    (gone,) = aged.prune()
    assert "faded" in gone.reason
    assert aged.get(gone.id).state is StrategyState.RETIRED


async def test_a_recall_keeps_to_its_budget_of_tokens(make_base: MakeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """Long lessons take fewer places, the best one always has its place."""
    base = make_base()
    for number, kind in enumerate(list(ActionKind)[:4]):
        action = make_outcome().action.model_copy(update={"kind": kind})
        await base.learn(make_outcome(plan=f"p{number}", action=action, lesson="word " * 200))
    whole = await base.recall(situation)
    assert len(whole) == 4
    assert len(await make_base(tokens=700).recall(situation)) == 2
    assert await make_base(tokens=1).recall(situation) == whole[:1]


async def test_doctor_finds_and_mends(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """A sound store is fine in every part; strays in the index are mended."""
    made = (await base.learn(make_outcome()))[0]
    assert [one.state for one in base.diagnose()] == ["fine"] * 4
    other = base.get(made)
    assert other.changes.tries == 1
