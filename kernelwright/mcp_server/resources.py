"""What can be read without a tool: the runs, what was tried in each, and the kernels they delivered."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError

from kernelwright.mcp_server.commands import Commands, Facts
from tools.errors import KernelwrightError
from tools.tracing.finding import find_run


def add_resources(server: MCPServer[Any], commands: Commands, home: Path) -> None:
    """Add the runs in `home` to `server`."""

    @server.resource("kernelwright://runs", mime_type="application/json")
    async def runs() -> str:
        """Every run: its problem's name, its state, and the best so far."""
        return await _read(commands, "runs")

    @server.resource("kernelwright://runs/{run}", mime_type="application/json")
    async def run(run: str) -> str:
        """What was tried in a run, under way or ended, and what came of it."""
        return await _read(commands, "trace", "--", run)

    @server.resource("kernelwright://runs/{run}/kernel", mime_type="text/x-python")
    async def kernel(run: str) -> str:
        """The source of the kernel that a run delivered."""
        from graphs.optimize.confirm import KERNEL

        try:
            file = find_run(home, run) / "result" / KERNEL
        except KernelwrightError as error:
            raise ResourceError(f"{error.what} {error.mend}") from error
        if not file.is_file():
            raise ResourceError(f"The run {run} has delivered no kernel.")
        return file.read_text(encoding="utf-8")


async def _read(commands: Commands, *words: str) -> str:
    try:
        found: Facts = await commands.run(*words)
    except KernelwrightError as error:
        raise ResourceError(f"{error.what} {error.mend}".strip()) from error
    return dumps(found, indent=1)
