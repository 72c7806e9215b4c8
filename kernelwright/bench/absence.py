"""Says once that a bench's questions wait at a spool where nobody works: otherwise the first line of progress never comes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from tools.spool import Spool
from tools.spool.vigil import HINT_AFTER_S, Vigil

SOON_S = 10.0
"""For a spool at which no worker is announced; one that is announced may beat slowly, and is waited for longer."""
LOOK_S = 0.5


async def tell_of_absence(spool: Spool, say: Callable[[str], None], *, soon_s: float = SOON_S, late_s: float = HINT_AFTER_S) -> None:
    """Tell how to start a worker where jobs are queued and none has stirred for a while; return when that is said or one stirs."""
    vigil = Vigil(spool, late_s)
    began = time.monotonic()
    while not vigil.anyone_stirs():
        is_known = any(not one.ended for one in spool.announcements())
        if spool.job_files() and time.monotonic() - began > (late_s if is_known else soon_s):
            seen = "the workers that were announced there do not stir" if is_known else "no worker has announced itself there"
            say(f"jobs wait at {spool.folder}, and {seen}: start one with `kernelwright worker --spool {spool.folder}`")
            return
        await asyncio.sleep(LOOK_S)
