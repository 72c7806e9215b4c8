"""The evaluators that a pool has on a cluster: asked for as there is work, placed by Ray, let go when idle, dropped when they die."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from tools.cluster.alike import demand_alike
from tools.cluster.calibration import EVERY_S, deviating, in_words, is_news
from tools.cluster.member import Member, Needs, asked_for, read_facts, short
from tools.cluster.records import Question, Reply
from tools.cluster.shortage import LOGS, shortage
from tools.cluster.turns import Turns
from tools.errors import KernelwrightError, MachineError

PENDING = 8
"""Evaluators asked for and not placed, at most: what an autoscaler is asked for at once."""
IDLE_S = 60.0
"""After so long without work an evaluator is let go, so that its node may be."""
_LOOK_S = 1.0
_HINT_S, _REMIND_S = 15.0, 60.0
_MISSES = 3
"""Evaluators lost one after the other while they begin, after which that is no accident."""
_SETTLE_S = 20.0
"""How long evaluators that are not placed yet are hoped for where all others are of no use."""


class Crew:
    """Evaluators of one kind."""

    def __init__(self, needs: Needs, say: Callable[[str], None]) -> None:
        """Ask for none yet; `say` gets a line for whatever a person should know."""
        self._needs = needs
        self._say = say
        self._members: list[Member] = []
        self._turns = Turns(lambda: self.ready, needs.order.parallel)
        self._fault: KernelwrightError | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._waiting = self._misses = 0
        self._since = self._said = self._faulted = self._without = 0.0
        self._closed = False

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
        while True:
            place = self._turns.enter()
            try:
                one = await self._given(place)
                # it may have been lost meanwhile
                if one.ready and one in self._members:
                    yield one
                    return
            finally:
                self._turns.leave(place)

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
            self._say(f"{one.place} is gone ({why}): what it was at goes to another")
        one.kill()
        alive = {node["NodeID"] for node in ray.nodes() if node["Alive"]}
        return one.facts is not None and one.facts.node in alive

    def put_out(self, one: Member, error: KernelwrightError) -> None:
        """Use one no more whose machine fails; it keeps its GPU, so that nobody is put there."""
        if not one.out:
            one.out = error.what
            self._blame(type(error)(f"{one.place}: {error.what}", error.mend))
            self._say(f"{one.place} is not used again: {error.what}")

    async def close(self) -> None:
        """End all; whoever waits or asks again is refused."""
        self._closed = True
        tasks = [*self._tasks, *([self._keeping] if self._keeping else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for one in self._members:
            one.kill()
        self._members.clear()

    async def _given(self, place: asyncio.Future[Member]) -> Member:
        """Wait for an evaluator at a place in the queue, and see to it that there will be one."""
        self._waiting += 1
        if self._waiting == 1:
            self._since = self._without = time.monotonic()
        try:
            while True:
                if self._closed:
                    raise MachineError("The pool has been closed.", "Make a new one.")
                self._grow()
                done, _ = await asyncio.wait({place}, timeout=_LOOK_S * 2)
                if done:
                    return place.result()
                self._hope()
        finally:
            self._waiting -= 1

    def _grow(self) -> None:
        """Ask for one more where every one has something to do, and few are waited for: Ray places it, or has its autoscaler make room."""
        pending = sum(not one.begun and not one.out for one in self._members)
        if pending >= min(PENDING, self._waiting) or any(one.ready and not one.busy for one in self._members):
            return
        one = asked_for(self._needs)
        self._members.append(one)
        self._begin(self._admit(one))

    async def _admit(self, one: Member) -> None:
        """Wait until Ray has placed it, and see whether it is what was asked for."""
        try:
            one.host = await one.handle.host.remote()
            async with asyncio.timeout(self._needs.begin_s):
                one.facts = read_facts(await one.handle.facts.remote())
                siblings = (each.facts for each in self.ready if each.facts)
                demand_alike(one.facts, self._needs.title, siblings)
                if one.facts.device:
                    one.doing = "times the calibration kernel"
                    await self._calibrate(one)
        except TimeoutError:
            what = f"it has not begun after {self._needs.begin_s:.0f} s: it {one.doing}."
            self.put_out(one, MachineError(what, f"Look at {LOGS}."))
            return
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
        self._turns.hand_out()

    def _missed(self, one: Member, error: Exception) -> None:
        if one in self._members:
            self._members.remove(one)
            self._misses += 1
            self._say(f"{one.place} is gone before it has begun ({short(error)})")
            # a node that is lost while one begins there says nothing about the next
            init = getattr(error, "actor_init_failed", False)
            if init or self._misses >= _MISSES:
                mend = "Install the same kernelwright on every node (docs/ray.md)." if init else f"Look at {LOGS}."
                self._blame(MachineError(f"An evaluator could not be started: {short(error)}.", mend))
        one.kill()

    def _blame(self, fault: KernelwrightError) -> None:
        """Remember what is to be told where nobody can be asked."""
        if self._fault is None:
            self._faulted = time.monotonic()
        self._fault = fault

    def _hope(self) -> None:
        """Raise what is wrong where nobody can be asked and nobody is to be expected; say what a wait that lasts is for."""
        now = time.monotonic()
        pending = [one for one in self._members if not one.begun and not one.out]
        placed = next((one for one in pending if one.host), None)
        if self.ready or placed is not None:
            self._without = now
        if self.ready:
            return
        if self._fault is not None and (not pending or now - self._faulted > _SETTLE_S):
            raise type(self._fault)(self._fault.what, self._fault.mend)
        if now - self._without > self._needs.place_s:
            what = f"Ray has had no place for an evaluator for {now - self._without:.0f} s, which needs {self._needs.words} on a node"
            raise MachineError(f"{what}: {shortage(dict(self._needs.options))}.", f"Look at {LOGS}.")
        if now - self._since > _HINT_S and now - self._said > _REMIND_S:
            self._said = now
            why = f"{placed.place} {placed.doing}" if placed else self._no_place()
            self._say(f"{self._waiting} questions wait: {why}")

    def _no_place(self) -> str:
        return f"Ray has no place for an evaluator yet, which needs {self._needs.words} on a node ({shortage(dict(self._needs.options))})"

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
                one.kill()
            if now - calibrated > EVERY_S:
                calibrated = now
                for one in self.ready:
                    self._begin(self._calibrate(one))

    async def _calibrate(self, one: Member) -> None:
        reply = await self.ask(one, Question(calibration=True))
        if reply.failure is not None:
            raise MachineError(reply.failure.what, reply.failure.mend)
        one.calibration_us = reply.calibration_us or 0.0
        timed = {each.place: each for each in self._members if each.facts and not each.out and each.calibration_us}
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
            self._say(f"an evaluator was not calibrated: {short(error)}")
