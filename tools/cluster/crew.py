"""The evaluators that a pool has on a cluster: asked for as there is work, placed by Ray, let go when idle, dropped when they die."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import ValidationError

from tools.cluster.calibration import EVERY_S, deviating, in_words, is_news
from tools.cluster.evaluator import actor_class
from tools.cluster.records import Facts, Failure, Question, Reply
from tools.cluster.station import Order, code_hash
from tools.errors import KernelwrightError, MachineError, UserError

PENDING = 8
"""Evaluators asked for and not placed, at most: what an autoscaler is asked for at once."""
IDLE_S = 60.0
"""After so long without work an evaluator is let go, so that its node may be."""
_LOOK_S = 1.0
_HINT_S, _REMIND_S = 30.0, 300.0
_MISSES = 3
"""Evaluators lost one after the other while they begin, after which that is no accident."""
_SETTLE_S = 20.0
"""How long evaluators that are not placed yet are hoped for where all others are of no use."""


@dataclass(frozen=True)
class Needs:
    """What Ray is to place an evaluator on, and what it does there."""

    opener: str
    order: Order
    options: tuple[tuple[str, Any], ...]
    """Of Ray's actors: processors, GPUs, kind of GPU."""
    title: str = ""
    """What its GPU must be called; empty for the interpreter."""
    words: str = "1 processor"


@dataclass(eq=False)
class Member:
    """One evaluator."""

    handle: Any
    facts: Facts | None = None
    busy: int = 0
    out: str = ""
    """Why it is not used again; it keeps its place all the same, so that nobody is put there."""
    idle_since: float = 0.0
    calibration_us: float = 0.0
    note: str = ""
    begun: bool = False
    """Whether it has been looked at, and its GPU timed: it is asked nothing before, and is not idle."""

    @property
    def ready(self) -> bool:
        """Whether it can be asked."""
        return self.begun and not self.out


@cache
def _actors() -> Any:
    import ray

    return ray.remote(actor_class())


class Crew:
    """Evaluators of one kind."""

    def __init__(self, needs: Needs, say: Callable[[str], None]) -> None:
        """Ask for none yet; `say` gets a line for whatever a person should know."""
        self._needs = needs
        self._say = say
        self._members: list[Member] = []
        self._slots: asyncio.PriorityQueue[tuple[int, int, Member]] = asyncio.PriorityQueue()
        self._number = itertools.count()
        self._fault: KernelwrightError | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting = self._misses = 0
        self._since = self._said = 0.0

    @property
    def ready(self) -> list[Member]:
        """Those that can be asked."""
        return [one for one in self._members if one.ready]

    @property
    def words(self) -> str:
        """Who is there, in words."""
        ready = self.ready
        nodes = len({one.facts.node for one in ready if one.facts})
        out = sum(bool(one.out) for one in self._members)
        return f"{len(ready)} evaluators on {nodes} nodes{f', {out} out of use' if out else ''}"

    @asynccontextmanager
    async def member(self) -> AsyncIterator[Member]:
        """Give an evaluator with room for one more question, the one with least to do; wait for one where there is none."""
        self._keeping = self._keeping or asyncio.create_task(self._keep())
        depth, one = await self._room()
        one.busy += 1
        try:
            yield one
        finally:
            one.busy -= 1
            one.idle_since = time.monotonic()
            if one.ready and one in self._members:
                self._slots.put_nowait((depth, next(self._number), one))

    async def ask(self, one: Member, question: Question) -> Reply:
        """Put a question to one; cancelling withdraws it there, too."""
        import ray

        ref = one.handle.ask.remote(question.model_dump_json())
        try:
            return Reply.model_validate_json(await ref)
        except asyncio.CancelledError:
            ray.cancel(ref)
            raise

    def drop(self, one: Member, why: str) -> bool:
        """Use one no more that is dead; False where its whole node is, so that it says nothing about what it was at."""
        import ray

        if one in self._members:
            self._members.remove(one)
            one.out = why
            self._say(f"{_place(one)} is gone ({why}): what it was at goes to another")
        _kill(one)
        alive = {node["NodeID"] for node in ray.nodes() if node["Alive"]}
        return one.facts is not None and one.facts.node in alive

    def put_out(self, one: Member, error: KernelwrightError) -> None:
        """Use one no more whose machine fails; it keeps its GPU, so that nobody is put there."""
        if not one.out:
            one.out = error.what
            self._fault = type(error)(f"{_place(one)}: {error.what}", error.mend)
            self._say(f"{_place(one)} is not used again: {error.what}")

    async def close(self) -> None:
        """End all."""
        tasks = [*self._tasks, *([self._keeping] if self._keeping else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for one in self._members:
            _kill(one)
        self._members.clear()

    async def _room(self) -> tuple[int, Member]:
        self._waiting += 1
        self._since = self._since or time.monotonic()
        try:
            while True:
                self._grow()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_S * 2):
                        depth, _, one = await self._slots.get()
                    # a slot of one that has gone meanwhile is no slot
                    if one.ready and one in self._members:
                        return depth, one
                self._hope()
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._since = 0.0

    def _grow(self) -> None:
        """Ask for one more where every one has something to do, and few are waited for: Ray places it, or has its autoscaler make room."""
        pending = sum(not one.begun and not one.out for one in self._members)
        if pending >= min(PENDING, self._waiting) or any(one.ready and not one.busy for one in self._members):
            return
        order = dict(vars(self._needs.order))
        handle = _actors().options(**dict(self._needs.options)).remote(self._needs.opener, order)
        one = Member(handle)
        self._members.append(one)
        self._begin(self._admit(one))

    async def _admit(self, one: Member) -> None:
        """Wait until Ray has placed it, and see whether it is what was asked for."""
        try:
            said = await one.handle.facts.remote()
            one.facts = _facts(said)
            one.facts = self._checked(one.facts)
            if one.facts.device:
                await self._calibrate(one)
        except KernelwrightError as error:
            self.put_out(one, error)
            return
        except Exception as error:
            # of Ray: the node died, or kernelwright is not there
            self._missed(one, error)
            return
        one.begun, one.idle_since = True, time.monotonic()
        self._fault, self._misses = None, 0
        if one.facts.keys:
            self._say(f"Ray on {one.facts.host} was started with {', '.join(one.facts.keys)}: start it without, workers need no key")
        for depth in range(self._needs.order.parallel):
            self._slots.put_nowait((depth, next(self._number), one))

    def _missed(self, one: Member, error: Exception) -> None:
        if one in self._members:
            self._members.remove(one)
            self._misses += 1
            # a node that is lost while one begins there says nothing about the next
            if getattr(error, "actor_init_failed", False) or self._misses >= _MISSES:
                mend = "Install the same kernelwright on every node (docs/ray.md)."
                self._fault = MachineError(f"An evaluator could not be started: {_short(error)}.", mend)
        _kill(one)

    def _checked(self, facts: Facts) -> Facts:
        if facts.code != code_hash():
            raise UserError(
                f"kernelwright there is other code ({facts.code}) than here ({code_hash()}).", "Install the same version on every node."
            )
        if facts.device.casefold() != self._needs.title.casefold():
            raise UserError(
                f"its GPU is {facts.device or 'none'}, and the target is {self._needs.title}.",
                "Leave that node out, or name its device with --target.",
            )
        for other in (one.facts for one in self.ready if one.facts and one.facts is not facts):
            for name in ("torch", "triton", "driver"):
                if facts.versions.get(name) != other.versions.get(name):
                    mine, theirs = facts.versions.get(name, "none"), other.versions.get(name, "none")
                    raise UserError(f"it has {name} {mine}, and {other.host} {theirs}.", "Install the same on every node.")
        return facts

    def _hope(self) -> None:
        """Raise what is wrong where nobody can be asked and nobody is to be expected; remind of a wait that lasts."""
        waited = time.monotonic() - self._since
        pending = [one for one in self._members if not one.begun and not one.out]
        if self._fault is not None and not self.ready and (not pending or waited > _SETTLE_S):
            raise type(self._fault)(self._fault.what, self._fault.mend)
        if not self.ready and waited > _HINT_S and time.monotonic() - self._said > _REMIND_S:
            self._said = time.monotonic()
            self._say(f"{self._waiting} questions wait: Ray has no place for an evaluator yet, which needs {self._needs.words} on a node")

    async def _keep(self) -> None:
        """Look after the crew: let go of those that have been idle, calibrate every hour."""
        calibrated = time.monotonic()
        while True:
            await asyncio.sleep(_LOOK_S)
            now = time.monotonic()
            idle = [one for one in self.ready if not one.busy and now - one.idle_since > IDLE_S]
            unplaced = [one for one in self._members if one.facts is None and not one.out] if not self._waiting else []
            for one in (*idle, *unplaced):
                self._members.remove(one)
                _kill(one)
            if now - calibrated > EVERY_S:
                calibrated = now
                for one in self.ready:
                    self._begin(self._calibrate(one))

    async def _calibrate(self, one: Member) -> None:
        reply = await self.ask(one, Question(calibration=True))
        if reply.failure is not None:
            raise MachineError(reply.failure.what, reply.failure.mend)
        one.calibration_us = reply.calibration_us or 0.0
        timed = {_place(each): each for each in self._members if each.facts and not each.out and each.calibration_us}
        odd = deviating({place: each.calibration_us for place, each in timed.items()})
        for place, each in timed.items():
            note = in_words(place, odd[place], len(timed)) if place in odd else ""
            if is_news(note, each.note):
                self._say(note)
            each.note = note

    def _begin(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._say(f"an evaluator was not calibrated: {_short(error)}")


def failed(failure: Failure, place: str) -> KernelwrightError:
    """Make an error again of one that was told."""
    kind = UserError if failure.kind == "user" else MachineError
    return kind(f"{failure.what} ({place})" if place else failure.what, failure.mend)


def _facts(said: str) -> Facts:
    try:
        return Facts.model_validate_json(said)
    except ValidationError:
        failure = Reply.model_validate_json(said).failure
        assert failure is not None
        raise MachineError(failure.what, failure.mend) from None


def _place(one: Member) -> str:
    return one.facts.place if one.facts else "an evaluator"


def _short(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "kernelwright" in line] or lines or [type(error).__name__]
    return told[-1][:300]


def _kill(one: Member) -> None:
    import ray

    with suppress(Exception):
        ray.kill(one.handle)
