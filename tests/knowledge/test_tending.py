"""What is changed by hand after it was learnt."""

import pytest

from knowledge.records import Situation, StrategyState
from knowledge.store import KnowledgeBase
from tests.knowledge.conftest import MakeOutcome
from tools.errors import UserError


async def test_a_retired_strategy_is_recalled_no_more(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """It stays in the log with its reason, and neither recall nor search brings it up."""
    (made,) = await base.learn(make_outcome())
    assert base.retire(made, "superseded").state is StrategyState.RETIRED
    assert await base.recall(situation) == ()
    assert base.search("softmax") == []
    assert any("retire" in line for line in base.history(made))


def test_retiring_without_a_reason_is_refused(base: KnowledgeBase) -> None:
    """What the log cannot explain later is not done."""
    with pytest.raises(UserError, match="needs a reason"):
        base.retire("x", " ")
