"""A real Chroma server for the tests that need one."""

from __future__ import annotations

import gc
import socket
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def chroma_server(folder: Path) -> Iterator[str]:
    """Run `chroma run` on a free port of the loopback and yield its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(Path(sys.executable).parent / "chroma"), "run", "--host", "127.0.0.1", "--port", str(port), "--path", str(folder)]
    # garbage of before is not of this server: to look at all imported modules takes two seconds
    gc.freeze()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=20)
        with warnings.catch_warnings():
            # Chroma leaves the sockets of a closed HTTP client to the garbage collector
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
