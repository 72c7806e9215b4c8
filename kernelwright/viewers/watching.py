"""Sees a run through while other programs look on: a thread sends what was recorded every few seconds, and never holds the run up."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

from graphs.optimize.execute import Listener, execute
from graphs.run.context import Services
from graphs.run.records import Delivery
from kernelwright.viewers.protocol import Viewer
from kernelwright.viewers.settings import open_viewers
from tools.errors import KernelwrightError

EVERY_S = 5.0
"""Between two looks."""
AGAIN_S = 60.0
"""Between two looks of a viewer that could not be reached."""
LAST_S = 30.0
"""How long the end of a run waits for its last look."""


async def see_through(services: Services, listener: Listener) -> Delivery:
    """Execute a run, shown by whatever viewers the environment asks for; what they fail at is said, and is no failure of the run."""
    viewers, notes = open_viewers(services.store)
    for note in notes:
        listener({"event": "viewed", "said": note})
    if not viewers:
        return await execute(services, listener)
    watch = Watch(viewers)
    try:
        delivery = await execute(services, listener)
    except asyncio.CancelledError:
        # a run that is stopped goes on some day, and is sent from here on then
        watch.leave()
        raise
    except BaseException:
        await asyncio.to_thread(watch.close)
        raise
    await asyncio.to_thread(watch.close)
    for said in watch.said:
        listener({"event": "viewed", "said": said})
    return delivery


class Watch:
    """A thread that looks for several viewers."""

    def __init__(self, viewers: Sequence[Viewer], every_s: float = EVERY_S) -> None:
        """Begin to look."""
        self.said: list[str] = []
        """What could not be sent when it was last tried, a sentence each."""
        self._viewers = viewers
        self._every_s = every_s
        self._over = threading.Event()
        self._left = False
        self._thread = threading.Thread(target=self._work, name="viewers", daemon=True)
        self._thread.start()

    def leave(self) -> None:
        """Look no more."""
        self._left = True
        self._over.set()

    def close(self) -> None:
        """Look for the last time, and wait for that."""
        self._over.set()
        self._thread.join(LAST_S)
        if self._thread.is_alive():
            self.said.append(f"What was recorded last was not taken within {LAST_S:.0f} s.")

    def _work(self) -> None:
        wait_s = self._every_s
        while not self._over.wait(wait_s):
            wait_s = AGAIN_S if self._looked() else self._every_s
        if not self._left:
            self.said = self._looked()

    def _looked(self) -> list[str]:
        """Look for each viewer; return what was in the way."""
        found = (_trouble(viewer) for viewer in self._viewers)
        return [said for said in found if said]


def _trouble(viewer: Viewer) -> str:
    try:
        viewer.look()
    except KernelwrightError as error:
        return f"{error.what} {error.mend}"
    except Exception as error:
        # whatever goes wrong while others are shown a run, the run goes on
        return f"{viewer.name} was not told: {type(error).__name__}: {error}."
    return ""
