"""The rebuildable Chroma index, embedded and on a server."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from knowledge.records import Situation
from knowledge.store import KnowledgeBase
from knowledge.vectors.embedding import HashingEmbedder
from tests.knowledge.conftest import MakeBase, MakeOutcome
from tests.support.chroma import chroma_server
from tools.errors import UserError
from tools.records import Action, ActionKind

LEARNER = """
import sys
from knowledge.vectors.embedding import HashingEmbedder
from knowledge.records import Outcome
from knowledge.store import KnowledgeBase
base = KnowledgeBase(sys.argv[1], HashingEmbedder(), seeds=None)
for line in sys.stdin:
    outcome = Outcome.model_validate_json(line)
    base.learn_now(outcome)
    assert base.recall_now(outcome.situation)
base.close()
assert not base.notes, base.notes
"""


async def teach(base: KnowledgeBase, make: MakeOutcome, count: int) -> None:
    """Learn `count` actions that differ in one parameter."""
    for block in range(count):
        action = Action(kind=ActionKind.TILING, region="r0", parameters={"BLOCK_N": block})
        await base.learn(make(plan=f"plan{block}", action=action))


def index_folder(base: KnowledgeBase) -> Path:
    """The Chroma folder that is in use."""
    return base.folder / "index" / json.loads((base.folder / "index" / "current.json").read_text())["folder"]


async def test_an_index_that_was_never_made_is_made(base: KnowledgeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """The first recall indexes all that was learnt before it."""
    await teach(base, make_outcome, 10)
    assert len(await base.recall(situation)) == 6
    assert base.rebuild() == 10
    assert base.notes == ()


async def test_a_stale_index_catches_up(make_base: MakeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """What another process learnt after this one opened its index is recalled by this one."""
    reader, writer = make_base(), make_base()
    await writer.learn(make_outcome())
    assert len(await reader.recall(situation)) == 1
    await writer.learn(make_outcome(plan="plan2", action=Action(kind=ActionKind.FUSION, region="r0")))
    assert len(await writer.recall(situation)) == 2
    assert len(await reader.recall(situation)) == 2
    assert reader.notes == writer.notes == ()


@pytest.mark.parametrize("damage", ["garbage", "truncated", "deleted"])
async def test_a_damaged_index_is_rebuilt_and_said(
    make_base: MakeBase, make_outcome: MakeOutcome, situation: Situation, damage: str
) -> None:
    """Overwritten, cut or deleted index files cost nothing but a rebuild, which is noted."""
    base = make_base()
    await teach(base, make_outcome, 8)
    before = await base.recall(situation)
    base.close()
    folder = index_folder(base)
    for file in [f for f in folder.rglob("*") if f.is_file()]:
        if damage == "garbage":
            file.write_bytes(b"\xff" * file.stat().st_size)
        elif damage == "truncated":
            file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    if damage == "deleted":
        shutil.rmtree(folder)
    again = make_base()
    assert await again.recall(situation) == before
    if damage != "deleted":
        assert "rebuilt from the log" in again.notes[0]


async def test_lost_entries_are_noticed(make_base: MakeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """An index that holds fewer entries than it says is rebuilt."""
    base = make_base()
    await teach(base, make_outcome, 8)
    await base.recall(situation)
    base.close()
    import chromadb  # heavy: only where it is needed

    client = chromadb.PersistentClient(path=str(index_folder(base)))
    collection = client.list_collections()[0]
    collection.delete(ids=[base.all()[3].id])
    client.close()
    again = make_base()
    assert len(await again.recall(situation, 8)) == 8
    assert "lost entries (7 of 8)" in again.notes[0]


async def test_an_index_of_another_history_is_rebuilt(make_base: MakeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """When the log was replaced by an older copy, entries that it does not have are not recalled."""
    base = make_base()
    await base.learn(make_outcome())
    base.close()
    shutil.copy(base.folder / "log.sqlite3", base.folder / "copy")
    again = make_base()
    await teach(again, make_outcome, 3)
    await again.recall(situation)
    again.close()
    for file in again.folder.glob("log.sqlite3*"):
        file.unlink()
    shutil.move(again.folder / "copy", again.folder / "log.sqlite3")
    restored = make_base()
    assert len(await restored.recall(situation)) == 1
    assert "another history" in restored.notes[0]


async def test_another_embedder_gets_a_collection_of_its_own(make_base: MakeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """Vectors of different embedders are never mixed; each is made from the log."""
    first = make_base()
    await teach(first, make_outcome, 4)
    await first.recall(situation)
    second = make_base(embedder=HashingEmbedder(64))
    assert len(await second.recall(situation, 8)) == 4
    assert len(await first.recall(situation, 8)) == 4
    assert first.notes == second.notes == ()


@pytest.mark.slow
def test_two_processes_learning_and_recalling_at_once_lose_nothing(
    tmp_path: Path, make_base: MakeBase, make_outcome: MakeOutcome, situation: Situation
) -> None:
    """Two processes alternate writes and reads on one embedded index, and at the end every entry is in log and index."""
    count = 25
    learners = []
    for name in ("left", "right"):
        actions = [Action(kind=ActionKind.TILING, region="r0", parameters={"BLOCK_N": i, "ROWS": len(name)}) for i in range(count)]
        lines = [make_outcome(run=name, plan=f"p{i}", action=a).model_dump_json() for i, a in enumerate(actions)]
        command = [sys.executable, "-c", LEARNER, str(tmp_path / "store")]
        learner = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)
        assert learner.stdin is not None
        learner.stdin.write("\n".join(lines))
        learner.stdin.close()
        learners.append(learner)
    assert [learner.wait(timeout=200) for learner in learners] == [0, 0]
    base = make_base()
    assert len(base.all()) == 2 * count
    assert len(base.recall_now(situation, 2 * count)) == 2 * count
    assert base.notes == ()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real `chroma run` on a free port of the loopback."""
    with chroma_server(tmp_path_factory.mktemp("chroma")) as address:
        yield address


async def test_a_server_takes_the_index(server: str, make_base: MakeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """Two stores share one server without mixing, and each finds its own; a rebuild there works."""
    first, second = make_base("first", server=server), make_base("second", server=server)
    await teach(first, make_outcome, 4)
    await second.learn(make_outcome())
    assert len(await first.recall(situation, 8)) == 4
    assert len(await second.recall(situation, 8)) == 1
    assert first.rebuild() == 4
    assert len(await first.recall(situation, 8)) == 4
    assert not (first.folder / "index").exists()


async def test_a_server_that_is_down_is_a_user_error_and_loses_nothing(
    make_base: MakeBase, make_outcome: MakeOutcome, situation: Situation
) -> None:
    """Learning goes on in the log; a recall says what is down and how to start it."""
    base = make_base(server="http://127.0.0.1:9")
    await base.learn(make_outcome())
    with pytest.raises(UserError, match=r"127\.0\.0\.1:9 does not answer") as error:
        await base.recall(situation)
    assert "chroma run" in error.value.mend
    assert len(base.all()) == 1


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host", "http://", "http://host:notaport"])
def test_a_server_that_is_no_address_is_refused_at_once(make_base: MakeBase, url: str) -> None:
    """A wrong address is named before anything is opened."""
    with pytest.raises(UserError, match="not the address of a Chroma server"):
        make_base(server=url)
