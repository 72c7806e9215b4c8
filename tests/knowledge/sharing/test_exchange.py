"""Machines that share one memory over a real Chroma server."""

import contextlib
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from knowledge.log.event_log import EventKind, EventLog
from knowledge.records import Situation
from knowledge.sharing.board import Board, Head
from knowledge.sharing.travel import packed, unpacked
from knowledge.store import KnowledgeBase
from knowledge.vectors.homes import ServerHome
from tests.knowledge.conftest import MakeBase, MakeOutcome
from tests.support.chroma import chroma_server
from tools.errors import UserError
from tools.records import Action, ActionKind

# Chroma leaves the sockets of a closed HTTP client to the garbage collector
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")

LEARNER = """
import sys
from knowledge.vectors.embedding import HashingEmbedder
from knowledge.records import Outcome
from knowledge.store import KnowledgeBase
base = KnowledgeBase(sys.argv[1], HashingEmbedder(), server=sys.argv[2], share=sys.argv[3], seeds=None)
for line in sys.stdin:
    base.learn_now(Outcome.model_validate_json(line))
    print("learnt", flush=True)
base.close()
assert not base.notes, base.notes
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real `chroma run` on a free port of the loopback."""
    with chroma_server(tmp_path_factory.mktemp("chroma")) as address:
        yield address


@pytest.fixture
def shared(make_base: MakeBase, server: str, request: pytest.FixtureRequest) -> MakeBase:
    """Open stores that share one memory of this test's own."""

    def make(name: str, **settings: Any) -> KnowledgeBase:
        return make_base(name, **({"server": server, "share": share_of(request)} | settings))

    return make


def share_of(request: pytest.FixtureRequest) -> str:
    """A memory's name after the test's."""
    return "".join(c for c in request.node.name if c.isalnum())[-60:]


def tile(number: int) -> Action:
    """One of many actions."""
    return Action(kind=ActionKind.TILING, region="r0", parameters={"BLOCK_N": number})


def share_of_base(base: KnowledgeBase) -> str:
    """The name under which a store is shared."""
    assert base._sharing is not None
    return base._sharing.name


@contextlib.contextmanager
def opened_board(server: str, base: KnowledgeBase) -> Iterator[Board]:
    """The board by which a store is shared."""
    home = ServerHome(server)
    board = Board(home, share_of_base(base))
    board.open()
    yield board
    home.close()


def known(base: KnowledgeBase) -> dict[str, tuple[str, frozenset[str]]]:
    """What a store knows, whatever it calls it: state and trials by action."""
    base.check()
    return {
        json.dumps([s.kind, s.parameters], default=str): (s.state.value, frozenset(f"{t.run}/{t.candidate}/{t.gain}" for t in s.trials))
        for s in base.all()
    }


def keys(base: KnowledgeBase, *kinds: EventKind) -> list[str]:
    """Keys of a store's events."""
    log = EventLog(base.folder / "log.sqlite3")
    found = [event.key for event in log.read(kinds=kinds)]
    log.close()
    return found


async def test_what_one_machine_learns_the_other_recalls(shared: MakeBase, make_outcome: MakeOutcome, situation: Situation) -> None:
    """Each takes over what the other put before its own next look: strategy, trial and outcome, of the time they were learnt."""
    here, there = shared("here"), shared("there")
    await here.learn(make_outcome())
    assert [r.strategy.title for r in await there.recall(situation)] == [s.title for s in here.all()]
    await there.learn(make_outcome(run="run2", plan="plan2", action=tile(1)))
    await here.learn(make_outcome(run="run3", plan="plan3", action=tile(2)))
    await there.learn(make_outcome(run="run4", plan="plan4", action=tile(3)))
    again = shared("here")
    assert known(again) == known(there)
    assert len(known(there)) == 4
    assert sorted(e.outcome.run for e in there.experiences()) == ["run1", "run2", "run3", "run4"]
    assert (here.notes, there.notes) == ((), ())


async def test_one_action_learnt_by_both_is_one_strategy(shared: MakeBase, make_outcome: MakeOutcome) -> None:
    """Each keeps its own words and name for it, knows the other's name, and both have both trials."""
    here, there = shared("here"), shared("there")
    here.all(), there.all()
    (mine,) = await here.learn(make_outcome(run="run1", lesson="One pass wins."))
    (theirs,) = await there.learn(make_outcome(run="run2", candidate="cand2", lesson="A single sweep is enough.", cited=()))
    again = shared("here")
    assert mine != theirs
    assert known(again) == known(there)
    assert [len(s.trials) for s in again.all()] == [2]
    assert again.get(theirs).id == mine
    assert again.worth(mine).cited == 0
    (found,) = again.all()
    assert found.lesson == "One pass wins."


async def test_citing_by_the_others_name_counts_for_the_one_here(shared: MakeBase, make_outcome: MakeOutcome) -> None:
    """A plan of another machine that rests on its name for what is known here credits, and is counted for, the one here."""
    here, there = shared("here"), shared("there")
    here.all(), there.all()
    (mine,) = await here.learn(make_outcome(run="run1", lesson="One pass wins."))
    (theirs,) = await there.learn(make_outcome(run="run2", lesson="A single sweep is enough."))
    await there.learn(make_outcome(run="run3", plan="plan3", action=tile(1), cited=(theirs,)))
    again = shared("here")
    assert again.worth(mine).cited == 1
    assert len(again.get(mine).trials) == 3
    assert len(again.history(mine)) == 5


async def test_a_retirement_and_its_undoing_travel(shared: MakeBase, make_outcome: MakeOutcome) -> None:
    """What one machine retires the other recalls no more, and either may take it back; numbers of changes stay each log's own."""
    here, there = shared("here"), shared("there")
    await here.learn(make_outcome(run="other", plan="p", action=tile(9)))
    (name,) = await here.learn(make_outcome())
    here.retire(name, "superseded")
    assert there.get(name).state == "retired"
    change = there.changes(name=name)[-1]
    there.revert(change.change, "it was not")
    again, third = shared("here"), shared("third")
    assert [base.get(name).state for base in (again, third)] == ["observed", "observed"]
    assert [c.kind for c in again.changes(name=name)] == [c.kind for c in third.changes(name=name)] == ["retire", "revert"]


async def test_recalls_merges_seeds_and_rewritten_lessons_stay_at_home(shared: MakeBase, make_outcome: MakeOutcome, tmp_path: Path) -> None:
    """Only what was learnt, imported or retired by hand travels; each machine words its lessons by all it knows."""
    seeds = {"seeds": Path(__file__).parents[3] / "data" / "knowledge"}
    here, there = shared("here", **seeds), shared("there")
    for run in ("run1", "run2"):
        await here.learn(make_outcome(run=run, gain=2.0, predicted_gain=1.1))
    await here.recall(make_outcome().situation)
    assert (await here.update()).rewritten
    await here.finish("run2")
    assert len(there.all()) == 1
    assert there.all()[0].lesson == "One pass over the row wins."
    assert set(there.stats()["events"]) == {"strategy", "trial", "outcome", "run", "shared"}  # type: ignore[call-overload]
    assert (await there.update()).outcomes == 2


async def test_trials_of_a_strategy_that_is_not_here_wait_for_it(shared: MakeBase, make_outcome: MakeOutcome) -> None:
    """A seed of another release is credited with what others tried of it once it is planted."""
    seeds = {"seeds": Path(__file__).parents[3] / "data" / "knowledge"}
    here, there = shared("here", **seeds), shared("there")
    seed = here.all()[0].id
    await here.learn(make_outcome(cited=(seed,)))
    assert [s.id for s in there.all() if s.id == seed] == []
    later = shared("there", **seeds)
    assert later.get(seed).trials == here.get(seed).trials != ()


async def test_a_memory_that_is_not_shared_stays_alone(
    shared: MakeBase, make_base: MakeBase, server: str, make_outcome: MakeOutcome
) -> None:
    """A server alone, or another name, brings nothing in and lets nothing out."""
    await shared("here").learn(make_outcome())
    alone, others = make_base("alone", server=server), shared("others", share="others")
    assert (alone.all(), others.all()) == ((), ())


async def test_nothing_is_done_twice(shared: MakeBase, make_outcome: MakeOutcome, server: str) -> None:
    """Opening again, and exchanging in any order among three machines, adds no event and puts nothing that came from there."""
    names = ("one", "two", "three")
    for number, name in enumerate(names):
        await shared(name).learn(make_outcome(run=name, action=tile(number)))
    events = [len(keys(shared(name), *EventKind)) for _ in range(3) for name in names if shared(name).all()]
    assert events[3:6] == events[6:]
    assert len({json.dumps(sorted(known(shared(name)).items()), default=sorted) for name in names}) == 1
    for name in names:
        assert len(keys(shared(name), EventKind.TRIAL)) == 3
    with opened_board(server, shared("one")) as board:
        assert [head.number for head in board.heads()] == [3, 3, 3]


async def test_a_batch_that_was_put_without_its_head_is_put_again(shared: MakeBase, make_outcome: MakeOutcome, server: str) -> None:
    """A process killed between the two leaves a head that lags; the next exchange repeats the work and nothing is doubled."""
    here, there = shared("here"), shared("there")
    await here.learn(make_outcome())
    await here.learn(make_outcome(run="run2", action=tile(2)))
    with opened_board(server, here) as board:
        (head,) = board.heads()
        first = EventLog(here.folder / "log.sqlite3").read(kinds=(EventKind.STRATEGY,))[0]
        board.put(Head(store=head.store, number=1, seq=first.seq, key=first.key), [packed(here._log, first) or ""])
    assert len(there.all()) == 1
    assert len(there.all()[0].trials) == 0
    shared("here").all()
    again = shared("there")
    assert known(again) == known(here)
    assert len(keys(again, EventKind.TRIAL)) == 2


async def test_a_board_that_was_deleted_is_filled_again(shared: MakeBase, make_outcome: MakeOutcome, server: str) -> None:
    """Each machine puts all that it knows there again, also what came from one that is gone by now."""
    here, there = shared("here"), shared("there")
    await here.learn(make_outcome())
    await there.learn(make_outcome(run="run2", action=tile(2)))
    home = ServerHome(server)
    home.client().delete_collection(f"kernelwright-share-{share_of_base(here)}")
    home.close()
    shutil.rmtree(here.folder)
    shared("there").all()
    assert known(shared("here")) == known(shared("there"))
    assert len(known(shared("here"))) == 2


async def test_an_older_copy_of_a_log_gets_back_what_it_lost(shared: MakeBase, make_outcome: MakeOutcome, tmp_path: Path) -> None:
    """A log put back from a copy goes by a new name, says so, and takes over what its former self had shared."""
    here = shared("here")
    await here.learn(make_outcome())
    here.close()
    shutil.copytree(here.folder, tmp_path / "copy")
    await here.learn(make_outcome(run="run2", action=tile(2)))
    here.close()
    back = shared("copy")
    await back.learn(make_outcome(run="run3", action=tile(3)))
    assert "Another history of this log" in back.notes[0]
    assert len(known(back)) == 3
    assert known(shared("here")) == known(back)


async def test_a_server_that_goes_away_costs_nothing(make_base: MakeBase, make_outcome: MakeOutcome, tmp_path: Path) -> None:
    """Learning goes on with one line that says so; what was learnt meanwhile is shared the next time."""
    place = {"share": "team"}
    with chroma_server(tmp_path / "chroma") as address:
        here = make_base("here", server=address, **place)
        await here.learn(make_outcome())
    for number in range(3):
        await here.learn(make_outcome(run=f"gone{number}", action=tile(number)))
    await here.finish("gone2")
    (note,) = here.news()
    assert note.startswith(f"Memory is not shared as team for now: The Chroma server at {address} does not answer")
    assert here.news() == ()
    with chroma_server(tmp_path / "chroma") as address:
        again, there = (make_base(name, server=address, **place) for name in ("here", "there"))
        assert known(again) == known(there)
        assert len(known(there)) == 4
        assert (again.notes, [f.state for f in there.diagnose() if f.name == "share"]) == ((), ["fine"])


@pytest.mark.thorough
def test_two_machines_writing_at_once_and_one_killed_lose_nothing(
    shared: MakeBase, make_outcome: MakeOutcome, server: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Two processes on one log and one on another learn at once, and one is killed in the middle and begun again."""
    count = 12
    where = {"left": "store1", "beside": "store1", "right": "store2"}

    def start(name: str) -> subprocess.Popen[bytes]:
        lines = [make_outcome(run=name, plan=f"p{i}", action=tile(i), lesson=f"As {name} saw it.").model_dump_json() for i in range(count)]
        (tmp_path / name).write_text("\n".join(lines))
        command = [sys.executable, "-c", LEARNER, str(tmp_path / where[name]), server, share_of(request)]
        with (tmp_path / name).open() as stdin, (tmp_path / f"{name}.out").open("w") as stdout:
            return subprocess.Popen(command, stdin=stdin, stdout=stdout)

    learners = {name: start(name) for name in where}
    while (tmp_path / "right.out").read_text().count("learnt") < count // 2:
        assert learners["right"].poll() is None
        time.sleep(0.005)
    learners["right"].send_signal(signal.SIGKILL)
    learners["right"].wait()
    learners["again"] = start("right")
    assert [learners[name].wait(timeout=120) for name in ("left", "beside", "again")] == [0, 0, 0]
    shared("store1").all()
    left, right = shared("store1"), shared("store2")
    expected = frozenset(f"{run}/cand1/1.5" for run in where)
    assert known(right) == known(left)
    assert [trials for _, trials in known(left).values()] == [expected] * count
    for base in (left, right):
        assert len(keys(base, EventKind.TRIAL)) == len(set(keys(base, EventKind.TRIAL))) == 3 * count
        assert len(keys(base, EventKind.OUTCOME)) == 3 * count


def test_events_in_any_order_fold_into_the_same_knowledge(base: KnowledgeBase, make_base: MakeBase, make_outcome: MakeOutcome) -> None:
    """Trials and retirements that come before their strategies wait for them; two names of one action are one entry."""
    other = make_base("other")
    for number, store in enumerate((base, other, base, other)):
        store.learn_now(make_outcome(run=f"run{number}", action=tile(number // 3), lesson=f"Lesson {number}."))
    base.retire(base.all()[0].id, "superseded")
    parcels = [unpacked(text) for store in (base, other) for e in store._log.read() if (text := packed(store._log, e))]
    assert len(parcels) == 2 + 4 + 4 + 1 + 1
    found = []
    for seed in range(12):
        store = make_base(f"order{seed}")
        with store._log.writing() as writer:
            for parcel in random.Random(seed).sample(parcels, len(parcels)):
                writer.copy(parcel.event)
        facts = sorted((s.kind, json.dumps(s.parameters), s.state, sorted(t.run for t in s.trials)) for s in store.all())
        found.append(facts)
    assert [state for _, _, state, _ in found[0]] == ["retired", "observed"]
    assert all(facts == found[0] for facts in found)


@pytest.mark.parametrize("name", ["two words", "-x", "x" * 65, "ü", "a/b"])
def test_a_name_that_cannot_be_one_is_refused_at_once(make_base: MakeBase, name: str) -> None:
    """Nothing is opened or made."""
    with pytest.raises(UserError, match="is no name for a shared memory"):
        make_base(server="http://127.0.0.1:9", share=name)


def test_sharing_needs_a_server(make_base: MakeBase) -> None:
    """The index in a folder is nobody else's."""
    with pytest.raises(UserError, match="cannot be shared as team without a Chroma server"):
        make_base(share="team")


async def test_what_cannot_be_read_waits_with_what_follows_it(shared: MakeBase, make_outcome: MakeOutcome, server: str) -> None:
    """An event that this release cannot keep is said and never written; once it can be read all comes, and nothing is lost."""
    here, there = shared("here"), shared("there")
    await here.learn(make_outcome())
    await here.learn(make_outcome(run="run2", action=tile(2)))
    home = ServerHome(server)
    board = home.client().get_collection(f"kernelwright-share-{share_of_base(here)}", embedding_function=None)
    name = f"{here._log.store_id}:4"
    (text,) = board.get(ids=[name], include=["documents"])["documents"]
    board.update(ids=[name], documents=[json.dumps({**json.loads(text), "version": 99})], embeddings=[[0.0]])
    assert len(there.all()) == 1
    assert "cannot be read (it is of version 99" in there.notes[0]
    assert [f.state for f in there.diagnose() if f.name == "share"] == ["wrong"]
    board.update(ids=[name], documents=[text], embeddings=[[0.0]])
    assert [f.state for f in there.diagnose() if f.name == "share"] == ["fine"]
    assert known(there) == known(here)
    home.close()


@pytest.mark.parametrize(
    "changed",
    [
        {"kind": "recall"},
        {"subject": "another"},
        {"at": "yesterday"},
        {"body": {}},
        {"body": {"strategy": {}, "origin": "learnt"}},
        {"version": 99},
        {"more": 1},
    ],
)
async def test_a_bad_event_is_refused_before_it_is_in_a_log(
    base: KnowledgeBase, make_outcome: MakeOutcome, changed: dict[str, Any]
) -> None:
    """A log never forgets, so nothing enters it that a fold could not read."""
    await base.learn(make_outcome())
    text = packed(base._log, base._log.read(kinds=(EventKind.STRATEGY,))[0])
    assert text is not None
    assert unpacked(text).subject == base.all()[0].id
    with pytest.raises(ValueError, match=r"."):
        unpacked(json.dumps({**json.loads(text), **changed}))


async def test_another_run_of_the_same_name_is_said(shared: MakeBase, make_outcome: MakeOutcome) -> None:
    """Its outcome is left out, for run and plan name an outcome; a note says so."""
    here, there = shared("here"), shared("there")
    here.all(), there.all()
    await here.learn(make_outcome(gain=1.5))
    await there.learn(make_outcome(gain=1.7))
    assert there.notes[0].startswith("Of other machines' outcomes 1 has the name of one")
    assert len(there.experiences()) == 1


async def test_one_can_look_before_joining(shared: MakeBase, make_outcome: MakeOutcome, server: str) -> None:
    """A look makes nothing: it tells who shares a memory, or which others there are where the name is nobody's yet."""
    here = shared("here")
    await here.learn(make_outcome())
    home = ServerHome(server)
    heads, others = Board(home, share_of_base(here)).look()
    assert [head.number for head in heads or ()] == [3]
    assert share_of_base(here) not in others
    for _ in range(2):
        heads, others = Board(home, "nobody").look()
        assert heads is None
        assert share_of_base(here) in others
    home.close()


class Guarded(BaseHTTPRequestHandler):
    """Asks everybody for credentials."""

    def do_GET(self) -> None:
        """Refuse."""
        self.send_error(401)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Say nothing on standard error."""


async def test_a_server_that_asks_for_credentials_is_said(make_base: MakeBase, make_outcome: MakeOutcome) -> None:
    """Learning goes on, with a note that says why nothing is shared."""
    with HTTPServer(("127.0.0.1", 0), Guarded) as guarded:
        thread = Thread(target=guarded.serve_forever)
        thread.start()
        base = make_base(server=f"http://127.0.0.1:{guarded.server_port}", share="team")
        await base.learn(make_outcome())
        guarded.shutdown()
        thread.join()
    (note,) = base.notes
    assert note.startswith("Memory is not shared as team for now: The Chroma server at")
    assert "asks for credentials" in note
    assert len(base.all()) == 1
