"""The knowledge base as a whole."""

import subprocess
import sys
from pathlib import Path

import pytest

from knowledge.protocol import Memory, NoMemory
from knowledge.records import Situation, StrategyState
from knowledge.store import KnowledgeBase
from tests.knowledge.conftest import MakeBase, MakeOutcome
from tools.errors import UserError
from tools.records import Action, ActionKind


def test_it_is_a_memory(base: KnowledgeBase) -> None:
    """The store and the null memory fit the graph's protocol."""
    memories: list[Memory] = [base, NoMemory()]
    assert [bool(memory.name) for memory in memories] == [True, True]


def test_opening_and_listing_load_nothing_heavy(tmp_path: Path) -> None:
    """Listing a store imports neither Chroma nor sentence-transformers nor torch, and makes no index."""
    script = (
        "import sys; from knowledge.store import KnowledgeBase; base = KnowledgeBase(sys.argv[1]); assert base.all(); base.close();"
        "print([name for name in ('chromadb', 'sentence_transformers', 'torch', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "store")], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert not (tmp_path / "store" / "index").exists()


def test_making_one_touches_nothing(make_base: MakeBase, tmp_path: Path) -> None:
    """The folder appears on first use."""
    base = make_base()
    assert not base.folder.exists()
    assert base.all() == ()
    assert base.folder.is_dir()


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


async def test_a_retired_strategy_is_recalled_no_more(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """It stays in the log with its reason, and neither recall nor search brings it up."""
    (made,) = await base.learn(make_outcome())
    assert base.retire(made, "superseded").state is StrategyState.RETIRED
    assert await base.recall(situation) == ()
    assert base.search("softmax") == []
    assert any("retire" in line for line in base.history(made))


def test_an_empty_search_or_reason_is_refused(base: KnowledgeBase) -> None:
    """Bad input gets a mend."""
    with pytest.raises(UserError, match="nothing to search"):
        base.search("  ")
    with pytest.raises(UserError, match="needs a reason"):
        base.retire("x", " ")


async def test_stats_count_what_is_known(base: KnowledgeBase, make_outcome: MakeOutcome) -> None:
    """States, families, trials and the embedder's name are told."""
    await base.learn(make_outcome())
    stats = base.stats()
    assert (stats["entries"], stats["trials"], stats["embedder"]) == (1, 1, "hashing-v1-384")
    assert stats["by_family"] == {"softmax": 1}


async def test_a_corrupt_store_is_one_clear_error(make_base: MakeBase, make_outcome: MakeOutcome) -> None:
    """Garbage in place of the log names the file and the way out, for every entrance."""
    base = make_base()
    await base.learn(make_outcome())
    base.close()
    (base.folder / "log.sqlite3").write_bytes(b"garbage" * 5000)
    for entrance in (lambda b: b.all(), lambda b: b.check(), lambda b: b.learn_now(make_outcome())):
        with pytest.raises(UserError, match="damaged"):
            entrance(make_base())


async def test_a_store_can_be_used_again_after_close(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """Closing lets go of the files only."""
    await base.learn(make_outcome())
    await base.recall(situation)
    base.close()
    assert len(await base.recall(situation)) == 1
    assert base.check() == 1
