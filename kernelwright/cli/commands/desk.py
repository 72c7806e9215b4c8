"""Answer a model's prompts by hand: a model server on this machine whose model is whoever writes the answers.

Each question is written to FOLDER as NNNN.prompt.md, to be read, and NNNN.request.json, as it came. Put the answer's text into
NNNN.answer.md, or calls of tools into NNNN.calls.json. The same question is asked once: a client that asks again, or a run that
is resumed, gets the answer that is there.

Examples:
  kernelwright desk --folder prompts

  kernelwright optimize op.py --model desk --base-url http://127.0.0.1:8765/v1 --model-set timeout_s=3600
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

LOOPBACK = "127.0.0.1"


def command(
    folder: Annotated[Path, typer.Option(help="Where questions are written and answers are read; made where it is not there.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to serve on, to this machine alone; 0: any free one.")] = 8765,
    count: Annotated[
        str,
        typer.Option(
            metavar="ENCODING", help="State tokens, counted by this encoding of tiktoken's, e.g. o200k_base.", show_default="none"
        ),
    ] = "",
) -> None:
    """Serve until stopped."""
    import sys

    import uvicorn

    from kernelwright.desk.app import build_desk
    from kernelwright.desk.counting import counter
    from kernelwright.desk.folder import DeskFolder
    from tools.listening import listen

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    counting = counter(count) if count else None
    desk = DeskFolder(folder)
    with listen(LOOPBACK, port) as listening:
        address = f"http://{LOOPBACK}:{listening.getsockname()[1]}/v1"
        say(f"Ask it with: --model desk --base-url {address} --model-set timeout_s=3600\nStop with Ctrl-C.")
        for number in desk.waiting():
            say(f"{number:04d} was asked before and has no answer yet")
        # who still waits when it is stopped asks again
        config = uvicorn.Config(build_desk(desk, say, counting), log_level="critical", timeout_graceful_shutdown=1)
        uvicorn.Server(config).run(sockets=[listening])
