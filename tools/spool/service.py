"""A worker as a process: opens this machine's pool, announces itself, works, and ends well when it is told to."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.errors import UserError
from tools.evaluation.several import capacity, open_local
from tools.hardware import load_sheet, match_title
from tools.hardware.devices import ALL, INTERPRETER, choose_devices, visible_devices
from tools.profiling.software import versions
from tools.scratch import PREFIX, scratch, sweep
from tools.spool.folder import Spool
from tools.spool.heartbeat import LEASE_S
from tools.spool.identity import myself
from tools.spool.records import Announcement
from tools.spool.worker import Summary, Worker


@dataclass(frozen=True)
class Ended:
    """How a worker ended."""

    announcement: Announcement
    summary: Summary
    signal: int
    """The signal that ended it; 0 where it ended by itself."""

    @property
    def facts(self) -> dict[str, Any]:
        """The summary as plain values."""
        done = self.summary
        return {
            "worker": self.announcement.worker.session,
            "host": self.announcement.worker.host,
            "executor": self.announcement.executor,
            "target": self.announcement.target,
            "devices": list(self.announcement.devices),
            "answered": done.answered,
            "verdicts": {verdict.value: count for verdict, count in sorted(done.verdicts.items())},
            "baselines": done.baselines,
            "failures": done.failures,
            "withdrawn": done.withdrawn,
            "given_back": done.given_back,
            "set_aside": done.set_aside,
            "left": done.left,
            "seconds": round(done.seconds, 3),
            "ended_by": signal.Signals(self.signal).name if self.signal else None,
        }

    @property
    def lines(self) -> list[str]:
        """The summary for people."""
        done = self.summary
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in done.verdicts.most_common()) or "no candidates"
        rest = {"failures": done.failures, "withdrawn": done.withdrawn, "given back": done.given_back}
        more = "".join(f", {count} {name}" for name, count in rest.items() if count)
        jobs = "1 job" if done.answered == 1 else f"{done.answered} jobs"
        lines = [f"answered {jobs} in {done.seconds:.0f} s: {verdicts}; references timed or estimated: {done.baselines}{more}"]
        lines += [f"set aside {name}: {reason}" for name, reason in done.set_aside.items()]
        return lines + [f"left: {reason}" for reason in done.left.values()]


class Service:
    """One worker process on one spool."""

    def __init__(
        self,
        folder: Path,
        *,
        devices: str = ALL,
        target: str = "",
        jobs: int = 0,
        lease_s: float = LEASE_S,
        scratch: Path | None = None,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        """Refuse what cannot work before anything is started; estimates are made only where `devices` asks for the interpreter."""
        title = load_sheet(target).title if target else ""
        chosen = choose_devices(devices, title)
        if not chosen and devices != INTERPRETER:
            raise UserError(
                "This machine has no GPU that a worker could use.",
                f"Give --devices {INTERPRETER} to check kernels in Triton's interpreter and estimate their times.",
            )
        titles = visible_devices()
        self._devices, self._lease_s, self._scratch, self._say = ",".join(map(str, chosen)) or INTERPRETER, lease_s, scratch, say
        self._jobs = jobs or capacity(len(chosen))
        # a worker of the interpreter has no device of its own
        sheet = target or (match_title(titles[chosen[0]]).name if chosen else "")
        self._spool = Spool(folder)
        self._announcement = Announcement(
            worker=myself(),
            executor="gpu" if chosen else "interpreter",
            target=sheet if chosen else None,
            devices=tuple(titles[index] for index in chosen),
            versions=versions("kernelwright", "torch", "triton"),
            since=time.time(),
            written=time.time(),
        )

    def run(self, *, drain: bool) -> Ended:
        """Work until told to stop, or until the spool is drained."""
        said = self._announcement
        what = f"for {said.target}" if said.target else "for any target; times are estimated"
        self._say(f"{said.worker}: {said.place} {what}, {self._jobs} at once, on {self._spool.folder}")
        sweep(PREFIX, self._scratch)
        with scratch(f"{PREFIX}worker-", self._scratch) as folder:
            # sandboxes run as other users and must reach their own folders below
            folder.chmod(0o711)
            return asyncio.run(self._run(folder, drain=drain))

    async def _run(self, scratch: Path, *, drain: bool) -> Ended:
        stop, caught = asyncio.Event(), [0]

        def end(number: int) -> None:
            self._say(f"{signal.Signals(number).name}: giving back what is under way")
            caught[0] = number
            stop.set()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            # what the starter had ignored, as nohup and a shell's background do, stays ignored
            if signal.getsignal(number) is not signal.SIG_IGN:
                loop.add_signal_handler(number, end, number)
        pool = open_local(scratch, self._devices, parallel=self._jobs)
        worker = Worker(self._spool, pool, self._announcement, jobs=self._jobs, lease_s=self._lease_s, say=self._say)
        try:
            summary = await worker.run(stop, drain=drain)
        finally:
            await pool.close()
        return Ended(self._announcement, summary, caught[0])
