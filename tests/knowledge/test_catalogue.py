"""Looking a store up: by id, in words, in figures."""

import pytest

from knowledge.store import KnowledgeBase
from tests.knowledge.conftest import MakeOutcome
from tools.errors import UserError
from tools.records import Action, ActionKind


async def test_a_unique_beginning_of_an_id_is_enough(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """`get` takes a prefix, and says when it is unknown or shared."""
    (made,) = await base.learn(make_outcome())
    assert base.get(made[:4]).title.startswith("Algorithm")
    with pytest.raises(UserError, match="no strategy 'zz'"):
        base.get("zz")
    with pytest.raises(UserError, match="no strategy ''"):
        base.get("")


async def test_a_shared_beginning_is_refused(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """Seventeen ids share a first digit with one another at least once."""
    ids = []
    for block in range(17):
        action = Action(kind=ActionKind.TILING, region="r0", parameters={"BLOCK_N": block})
        ids += await base.learn(make_outcome(plan=f"p{block}", action=action))
    shared = next(d for d in "0123456789abcdef" if sum(i.startswith(d) for i in ids) > 1)
    with pytest.raises(UserError, match="begins the ids of"):
        base.get(shared)


async def test_stats_count_what_is_known(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """States, families, trials and the embedder's name are told."""
    await base.learn(make_outcome())
    stats = base.stats()
    assert (stats["entries"], stats["trials"], stats["embedder"]) == (1, 1, "hashing-v1-384")
    assert stats["by_family"] == {"softmax": 1}


def test_an_empty_search_is_refused(base: KnowledgeBase) -> None:
    """Bad input gets a mend."""
    with pytest.raises(UserError, match="nothing to search"):
        base.search("  ")
