"""Sharing: a log puts copies of its own events on a board of a Chroma server, and takes over those of other machines.

The log stays the truth of its machine, and is whole without the server. Both directions may be repeated: what is on the board is
found by the board's own heads, and what was taken over is written in the log, in one transaction with the events. So a process that
is killed anywhere, or a server that goes away, leaves only work to do again.
"""

from __future__ import annotations

import bisect
import contextlib
import sys
import time
from collections.abc import Iterator

from knowledge.log.event_log import Event, EventKind, EventLog, Writer
from knowledge.log.finding import Finding
from knowledge.log.fold import Fold
from knowledge.sharing.board import PAGE, Board, Head
from knowledge.sharing.travel import TRAVELLING, Parcel, packed, unpacked
from knowledge.vectors.homes import ServerHome, UnreachableError
from tools.errors import MachineError

REST_S = 30.0
"""How long a server that failed is left alone before it is asked again."""

LOCK_S = 120.0
"""How long to wait for another process of this machine that exchanges; 20,000 events take about ten seconds."""


class Sharing:
    """Takes one log's part in a shared memory."""

    def __init__(self, home: ServerHome, name: str, log: EventLog) -> None:
        """Connect to nothing yet."""
        self.name = name
        self.notes: list[str] = []
        """What could not be shared so far, and why; one sentence each."""
        self._trouble: list[str] = []
        """The same of the last exchange alone."""
        self._home = home
        self._board = Board(home, name)
        self._log = log
        self._rests_until = 0.0
        self._away = False
        self._share = ""
        """Id of the board that what follows is about."""
        self._seen = 0
        self._reached: dict[str, int] = {}
        """Number of the last event taken over, by store."""
        self._taken: list[tuple[int, int]] = []
        """First and last `seq` of what was taken over from this board, in order: it is not put there again."""
        self._done: dict[str, tuple[int, int]] = {}
        """By this log's name on the board: the number of its last event there, and the `seq` up to which all that travels is there."""

    def exchange(self, fold: Fold, *, insist: bool = False) -> bool:
        """Put what is new here on the board and take over what is new there; return whether all of it went well.

        A server that fails is noted and left alone for a while, unless one insists.
        """
        if not insist and time.monotonic() < self._rests_until:
            return not self._trouble
        self._trouble = []
        try:
            with self._turn():
                self._exchange(fold)
        except UnreachableError as error:
            self._rests_until, was_away, self._away = time.monotonic() + REST_S, self._away, True
            kept = "What is learnt stays in the log of this machine and is shared the next time."
            said = f"Memory is not shared as {self.name} for now: {error.what} {error.mend} {kept}"
            self._trouble = [said]
            # once, however its failing is worded from then on
            self.notes += [] if was_away else [said]
        else:
            self._rests_until, self._away = 0.0, False
        return not self._trouble

    def finding(self, fold: Fold) -> Finding:
        """Exchange, and say for `doctor` how the shared memory stands."""
        if not self.exchange(fold, insist=True):
            return Finding(name="share", state="wrong", said=" ".join(self._trouble))
        others = f"{len(self._reached)} other machine{'' if len(self._reached) == 1 else 's'}"
        return Finding(name="share", state="fine", said=f"Shared as {self.name}: all is there, and all of {others} is here")

    def close(self) -> None:
        """Let go of the server."""
        self._home.close()

    def _exchange(self, fold: Fold) -> None:
        share = self._board.open()
        heads = {head.store: head for head in self._board.heads()}
        self._remember(share)
        self._put(self._own(heads))
        found = self._fetched(heads)
        if found:
            self._take(share, fold, found)

    def _own(self, heads: dict[str, Head]) -> Head:
        """The head of this log on the board; where it is another log's of the same name, this one takes another name."""
        store = self._log.store_id
        head = heads.get(store, Head(store=store))
        if head.number and self._log.key(head.seq) != head.key:
            self._log.rename()
            self._note(
                f"Another history of this log is shared as {self.name}: one of the two was copied by hand, or is an older copy put "
                "back. This one goes by a new name, and both keep all that they know."
            )
            return Head(store=self._log.store_id)
        return head

    def _put(self, head: Head) -> None:
        """Put the events after the head, page by page."""
        number, seq = self._done.get(head.store, (0, 0))
        # a server that was put back to an older state has forgotten some
        after = self._past_taken(max(head.seq, seq) if head.number >= number else head.seq)
        through = max(after, self._log.last())
        fresh = [event for event in self._log.read(after=after, kinds=TRAVELLING) if not self._is_taken(event.seq)]
        ready = [(event, text) for event in fresh if (text := packed(self._log, event)) is not None]
        for start in range(0, len(ready), PAGE):
            page = ready[start : start + PAGE]
            last = page[-1][0]
            head = head.model_copy(update={"number": head.number + len(page), "seq": last.seq, "key": last.key})
            self._board.put(head, [text for _, text in page])
        self._done[head.store] = head.number, through

    def _is_taken(self, seq: int) -> bool:
        """Whether an event came from this board."""
        place = bisect.bisect_right(self._taken, (seq, sys.maxsize)) - 1
        return place >= 0 and self._taken[place][0] <= seq <= self._taken[place][1]

    def _past_taken(self, seq: int) -> int:
        """Go on from an event past all that was taken over right after it."""
        for first, last in self._taken:
            if first <= seq + 1 <= last:
                seq = last
        return seq

    def _fetched(self, heads: dict[str, Head]) -> dict[str, list[Parcel]]:
        """What others put since, by store: all that the heads promise, so that whatever an event refers to comes with it."""
        found: dict[str, list[Parcel]] = {}
        for store, head in heads.items():
            after = self._reached.get(store, 0)
            if store != self._log.store_id and head.number > after:
                found[store] = self._read(store, after, head.number)
        known = {parcel.key for parcels in found.values() for parcel in parcels}
        for store, parcels in found.items():
            found[store] = list(self._before_strange(parcels, known))
        return {store: parcels for store, parcels in found.items() if parcels}

    def _read(self, store: str, after: int, through: int) -> list[Parcel]:
        """Read a machine's events up to the first that cannot be read; what follows it waits with it."""
        texts = self._board.fetch(store, after, through)
        if len(texts) < through - after:
            self._note(
                f"Event {after + len(texts) + 1} of machine {store[:8]} is missing from the shared memory {self.name}: "
                "what that machine learnt since waits. If it stays so, delete the collection: every machine puts its events there again."
            )
        parcels = []
        for number, text in enumerate(texts, start=after + 1):
            try:
                parcels.append(unpacked(text))
            except ValueError as error:
                reason = " ".join(str(error).split())[:200]
                self._note(
                    f"Event {number} of machine {store[:8]} in the shared memory {self.name} cannot be read ({reason}): "
                    "what that machine learnt since waits. Use one release on all machines."
                )
                break
        return parcels

    def _before_strange(self, parcels: list[Parcel], known: set[str]) -> Iterator[Parcel]:
        """Stop before what undoes a change that nobody has told yet."""
        for parcel in parcels:
            if parcel.kind is EventKind.REVERT and parcel.body["change"] not in known and not self._log.holds(parcel.body["change"]):
                return
            yield parcel

    def _take(self, share: str, fold: Fold, found: dict[str, list[Parcel]]) -> None:
        """Append what is new of it, and how far it reaches, in one transaction."""
        parcels = sorted((one for parcels in found.values() for one in parcels), key=lambda one: (TRAVELLING.index(one.kind), one.at))
        through = {store: self._reached.get(store, 0) + len(parcels) for store, parcels in found.items()}
        strays = 0
        with self._log.writing() as writer:
            fold.follow(self._log)
            taken: list[int] = []
            written = {*fold.entries, *fold.aliases}
            for parcel in parcels:
                seq = _copied(writer, parcel, written)
                taken += [] if seq is None else [seq]
                strays += seq is None and parcel.kind is EventKind.OUTCOME and writer.body(parcel.key) != parcel.body
            # keys of one transaction follow one another: nobody else writes meanwhile
            body = {"share": share, "name": self.name, "through": through, "first": min(taken, default=0), "done": self._done}
            writer.add(EventKind.SHARED, f"shared:{share}:{sorted(through.items())}", "", body)
        fold.follow(self._log)
        self._remember(share)
        if strays:
            self._note(
                f"Of other machines' outcomes {strays} {'has' if strays == 1 else 'have'} the name of one of this machine (run and plan) "
                "and stayed out. Let no two runs of a shared memory have one name."
            )

    def _remember(self, share: str) -> None:
        """Read what this log has taken over from the board so far."""
        if share != self._share:
            self._share, self._seen, self._reached, self._taken, self._done = share, 0, {}, [], {}
        for event in self._log.read(after=self._seen, kinds=(EventKind.SHARED,)):
            self._seen = event.seq
            if event.body["share"] == share:
                # this very event is the last of its transaction
                self._taken.append((int(event.body["first"]) or event.seq, event.seq))
                for store, (number, seq) in event.body["done"].items():
                    self._done[store] = max(self._done.get(store, (0, 0)), (int(number), int(seq)))
                for store, number in event.body["through"].items():
                    self._reached[store] = max(self._reached.get(store, 0), int(number))

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Let one process of this machine exchange at a time: heads only ever move on."""
        from filelock import FileLock, Timeout

        path = self._log.path.with_name("share.lock")
        # asking for its name makes the log, and its folder, where there is none
        _ = self._log.store_id
        lock = FileLock(path, timeout=LOCK_S, thread_local=False)
        try:
            lock.acquire()
        except Timeout as error:
            what = f"Another process has held {path} for over {LOCK_S:.0f} s."
            raise UnreachableError(what, "Wait for it to end, or end it.") from error
        except OSError as error:
            what = f"{path} cannot be written: {error.strerror or error}."
            raise MachineError(what, "Free disk space or correct its permissions, and repeat; the log has lost nothing.") from error
        try:
            yield
        finally:
            lock.release()

    def _note(self, note: str) -> None:
        self._trouble.append(note)
        if note not in self.notes:
            self.notes.append(note)


def _copied(writer: Writer, parcel: Parcel, written: set[str]) -> int | None:
    """Append one event of another machine; None where it is here already: a strategy is `written` once, however many machines have it."""
    event: Event = parcel.event
    if parcel.kind is EventKind.STRATEGY:
        if parcel.subject in written:
            return None
        written.add(parcel.subject)
    if parcel.kind is EventKind.REVERT:
        change = writer.seq(parcel.body["change"])
        event = Parcel(**{**dict(parcel), "key": f"revert:{change}", "body": {**parcel.body, "change": change}}).event
    return writer.copy(event)
