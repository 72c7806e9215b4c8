"""What every form of progress says: the run at its beginning, the reference, and what must not be overlooked."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from graphs.run.context import Services
from kernelwright.screen.hanging import print_hanging
from kernelwright.screen.words import SURE
from tools.cluster import RayPool
from tools.records import ROOT, Profile
from tools.references.reading import read_again
from tools.spool import SpoolPool

QUIET_S = 15.0
"""Seconds without a line after which one says that work goes on; twice as many after each such line."""
LONGEST_QUIET_S = 240.0
WAITS = ("model", "working")
"""Lines that say no more than that it is waited for something."""
MENTIONED_S = 10.0
"""A model's call that takes longer is mentioned."""
WARNING = "yellow"


class Teller:
    """Listens to a run's events and prints lines; what it says of each round is for those who extend it."""

    def __init__(self, services: Services, console: Console) -> None:
        """Print for `services`' run on `console`."""
        self.services = services
        self.console = console
        self._began = self._spoke = time.monotonic()
        self._quiet_s = QUIET_S
        self._said: dict[float, float] = {}
        """By the beginning of a call in flight: after how many seconds it is mentioned next."""

    def open(self, notes: Sequence[str] = ()) -> None:
        """Say what is about to be worked on, by whom, on what."""
        services, abi = self.services, self.services.problem.abi
        inputs = ", ".join(f"{t.name}{list(t.shape)} {t.dtype}" for t in abi.inputs)
        outputs = ", ".join(f"{list(t.shape)} {t.dtype}" for t in abi.outputs)
        self.say("run", services.run)
        self.say("problem", f"{services.problem.name}: {inputs} → {outputs}, policy {services.problem.policy}")
        for note in (*read_again(services.problem).notes, *notes):
            self.say("note", note, WARNING)
        self.say("agents", services.team.describe())
        self.say("target", f"{services.sheet.title}; evaluator {services.pool.name}")
        self.say("memory", services.memory.name)
        if isinstance(services.pool, SpoolPool):
            services.pool.listener = lambda line: self.say("spool", line)
        elif isinstance(services.pool, RayPool):
            services.pool.listener = lambda line: self.say("ray", line, WARNING)

    def start(self) -> None:
        """Take the terminal, where that is drawn on."""

    def close(self) -> None:
        """Leave the terminal as it was."""

    def __call__(self, event: dict[str, Any]) -> None:
        """Take one event in; of those that it has no words for it says nothing."""
        handler = getattr(self, f"_on_{event['event']}", None)
        if handler is not None:
            handler(event)

    async def watch(self) -> None:
        """Say of calls that take long that they are in flight, until cancelled."""
        while True:
            self.mention(time.monotonic())
            await asyncio.sleep(1.0)

    def mention(self, now: float) -> None:
        """Print a line for each call that has been in flight for MENTIONED_S, and twice as long each time after; and after a silence."""
        calls = self.services.team.in_flight()
        for call in calls:
            waited, how = now - call.began, " again" * call.again
            if waited >= self._said.setdefault(call.began, MENTIONED_S):
                self._said[call.began] = 2 * waited
                who = f"{call.model} as {call.role}; at most {call.limit_s:.0f} s a reply"
                self.say("model", f"asking the model{how}, {waited:.0f} s ({who})")
        if now - self._spoke >= self._quiet_s:
            self._quiet_s = min(2 * self._quiet_s, LONGEST_QUIET_S)
            asked = max((now - call.began for call in calls), default=0.0)
            self.say("working", self.at_work(now) + (f"; the model has been asked for {asked:.0f} s" if calls else ""))

    def at_work(self, now: float) -> str:
        """Say what is being done."""
        return f"no news for {now - self._spoke:.0f} s"

    def say(self, label: str, text: str, style: str = "") -> None:
        """Print one line."""
        self._spoke = time.monotonic()
        self._quiet_s = self._quiet_s if label in WAITS else QUIET_S
        head = Text.assemble((f"{self._spoke - self._began:6.1f}s", "dim"), f" {label:<9} ")
        print_hanging(self.console, head, Text(text, style=style))

    def _on_viewed(self, event: dict[str, Any]) -> None:
        self.say("traces", event["said"], WARNING)

    def _on_steered(self, event: dict[str, Any]) -> None:
        self.say("steered", event["said"])

    def _on_paused(self, event: dict[str, Any]) -> None:
        self.say("paused", f"go on with: kernelwright steer {self.services.run} --continue", WARNING)

    def _on_continued(self, event: dict[str, Any]) -> None:
        self.say("steered", "the run goes on")

    def _on_measured(self, event: dict[str, Any]) -> None:
        baselines = self.services.baselines()
        times = ", ".join(f"{name} {sample.median_us:,.1f} µs" for name, sample in baselines.samples.items())
        profile = self.services.store.get("profile", ROOT, Profile)
        limited = f"; limited by {profile.bottleneck}" if profile else ""
        self.say("reference", f"{times or f'eager {baselines.best_us:,.1f} µs'}, {SURE[baselines.tier]}{limited}")
        self.say("gain", f"is how many times as fast as {'the fastest of these' if len(baselines.samples) > 1 else 'that'} a candidate is")
        for note in baselines.notes:
            self.say("note", note, WARNING)
        for mark in baselines.admission.marks:
            self.say("weak", mark, WARNING)
