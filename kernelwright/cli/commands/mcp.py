"""Serve kernelwright's tools to coding agents, by the Model Context Protocol: evaluate, profile, verify, explain, optimize, trace, memory.

Over standard input and output by default, as agents start such servers; with --port over HTTP on this machine, to those who
know the token. Calls may name files below --root and what runs have left. Each is a command in a process of its own, with the
command line's sandbox and limits. Needs the extra: pip install "kernelwright[mcp]".

Examples:
  kernelwright mcp --root ~/kernels

  kernelwright mcp --port 8765 --most-minutes 30

  kernelwright mcp --skill > ~/.agent/skills/kernelwright/SKILL.md
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelwright.cli.shared.options import Home, home_folder

LOOPBACK = "127.0.0.1"


def command(
    root: Annotated[Path, typer.Option(help="Folder that calls may name files in.", show_default="the current one")] = Path(),
    port: Annotated[
        int, typer.Option(min=-1, max=65535, help="Serve HTTP here; 0: any free port.", show_default="none: standard input and output")
    ] = -1,
    host: Annotated[
        str, typer.Option(help="Address to serve HTTP on; another than this machine's trusts all who have the token.")
    ] = LOOPBACK,
    token: Annotated[
        str, typer.Option(envvar="KERNELWRIGHT_MCP_TOKEN", help="What HTTP requests must carry.", show_default="a new one, printed")
    ] = "",
    jobs: Annotated[int, typer.Option(min=1, help="Calls at work at once; others wait.")] = 2,
    most_evaluations: Annotated[int, typer.Option(min=1, help="Evaluations that one run may spend.")] = 64,
    most_minutes: Annotated[float, typer.Option(min=0.1, help="Minutes that one run may take.")] = 60.0,
    usd: Annotated[float, typer.Option(min=0, help="Money that one run may spend on a language model; 0: none can be asked for.")] = 0.0,
    skill: Annotated[bool, typer.Option("--skill", help="Print the page that tells an agent how to work with this, and end.")] = False,
    home: Home = None,
) -> None:
    """Serve until stopped."""
    from tools.errors import UserError

    if skill:
        print(_skill_page().read_text(encoding="utf-8"), end="")
        return
    if not root.is_dir():
        raise UserError(f"There is no folder {root}.", "Name the folder that agents work in: --root DIR.")
    try:
        import mcp  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise UserError("The package mcp is not installed.", 'Install it: pip install "kernelwright[mcp]".') from error
    from kernelwright.mcp_server.commands import Commands
    from kernelwright.mcp_server.places import Places
    from kernelwright.mcp_server.server import Limits, build_server

    places = Places(root.resolve(), home_folder(home))
    commands = Commands(places.root, places.home, jobs)
    server = build_server(places, commands, Limits(most_evaluations, most_minutes, usd))
    if port < 0:
        server.run("stdio")
        return
    _serve_http(server, host, port, token)


def _serve_http(server: object, host: str, port: int, token: str) -> None:
    import secrets
    import sys

    from kernelwright.mcp_server.http import PATH, serve
    from tools.listening import listen

    listening = listen(host, port)
    token = token or secrets.token_urlsafe(24)
    said = f"http://{host}:{listening.getsockname()[1]}{PATH}\nAuthorization: Bearer {token}"
    print(said, file=sys.stderr, flush=True)
    serve(server, listening, token)  # type: ignore[arg-type]


def _skill_page() -> Path:
    import tools

    return Path(tools.__file__).resolve().parents[1] / "data" / "skills" / "kernelwright" / "SKILL.md"
