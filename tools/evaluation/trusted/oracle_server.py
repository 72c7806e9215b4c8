"""The oracle server: one trusted process a problem, which makes inputs and judges outputs on the device, kept between candidates.

It does the jobs of the phases `inputs`, `oracle`, `sentinel` and `store`, one after the other, and never meets a candidate. It is kept
because a new process needs half a second to start CUDA, four times a candidate, and because what is in its stores stays on the device.
"""

from __future__ import annotations

import gc
import os
import socket
import traceback
from collections.abc import Callable

from tools.evaluation.trusted import device_store as store
from tools.evaluation.trusted import inputs, oracle, sentinel
from tools.evaluation.wire import fd_messages
from tools.evaluation.wire.jobs.oracle_server import DONE, FAILED
from tools.evaluation.wire.phase import Phase

_KEPT_BYTES = 128 << 20
"""Device memory that is kept for the next job: to give it back and ask for it again waits for whoever starts CUDA, on any GPU."""
_FUNCTIONS: dict[str, Callable[[Phase], None]] = {
    "inputs": inputs.make,
    "oracle": oracle.judge,
    "sentinel": sentinel.work,
    "store": store.serve,
}
"""By the names of `wire.jobs.oracle_server.JOBS`."""


def serve(phase: Phase) -> None:
    """Do one job after the other until the supervisor goes away; what a job held on the device is given back after it, but for a little."""
    import torch

    while (request := fd_messages.receive(phase.control)) is not None:
        message, descriptors = request
        shared = dict(zip(message["names"], descriptors, strict=True))
        with os.fdopen(shared.pop("job"), "rb") as file:
            file.seek(0)
            job = file.read()
        reply, one = FAILED, Phase(job, phase.control, shared, phase.scratch)
        try:
            _FUNCTIONS[message["phase"]](one)
            reply = DONE
        except Exception:
            traceback.print_exc(limit=-8)
        # a phase closes the memory that it maps
        os.close(shared["answer"])
        if not one.light:
            gc.collect()
            if torch.cuda.is_initialized() and torch.cuda.memory_reserved() > _KEPT_BYTES:  # type: ignore[no-untyped-call]
                torch.cuda.empty_cache()
        socket.send_fds(phase.control, [reply], one.given)
        for fd in one.given:
            os.close(fd)
