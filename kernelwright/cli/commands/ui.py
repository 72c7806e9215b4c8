"""Look at runs, models, benches and memory in the browser: search trees, candidates, prompts, profiles, gains; steer what is under way.

Only this machine can open the pages. With --host of another address they ask for a token, which is printed.

Examples:
  kernelwright ui

  kernelwright ui --port 8080 --home ~/kernels
"""

from __future__ import annotations

from typing import Annotated

import typer

from kernelwright.cli.shared.options import Home, home_folder

LOOPBACK = "127.0.0.1"
LOCAL_NAMES = (LOOPBACK, "localhost", "[::1]")


def command(
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to serve on; 0: any free one.")] = 8899,
    host: Annotated[str, typer.Option(help="Address to serve on; another than this machine's asks for a token.")] = LOOPBACK,
    token: Annotated[
        str, typer.Option(envvar="KERNELWRIGHT_UI_TOKEN", help="Token to ask for.", show_default="none on this machine, else a new one")
    ] = "",
    home: Home = None,
) -> None:
    """Serve until stopped."""
    import secrets
    import sys
    from contextlib import suppress

    import uvicorn

    from kernelwright.ui.app import build_app
    from tools.listening import listen

    local = host in LOCAL_NAMES
    token = token or ("" if local else secrets.token_urlsafe(24))
    with listen(host, port) as listening:
        address = f"http://{host}:{listening.getsockname()[1]}/{f'?token={token}' if token else ''}"
        print(f"{address}\nStop with Ctrl-C.", file=sys.stderr, flush=True)
        app = build_app(home_folder(home), LOCAL_NAMES if local else ("*",), token)
        # a server's end is to be stopped: no work was broken off
        with suppress(KeyboardInterrupt):
            uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])
