"""Coding agents call the commands by the Model Context Protocol: through the SDK's own client, over its own transports.

The SDK is imported by tests, not here: every worker collects this file, and one of them runs it.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import uvicorn
from typer.testing import CliRunner

from kernelwright import HOME
from kernelwright.cli.app import app
from kernelwright.mcp_server.commands import Commands
from kernelwright.mcp_server.places import LARGEST_BYTES, Places
from tools.listening import listen

if TYPE_CHECKING:
    from mcp import Client
    from mcp.server.mcpserver import MCPServer

ECHO = "import json, sys; print('  1.0s evaluate  abc PASS', file=sys.stderr); print(json.dumps({'words': sys.argv[1:]}))"
REFUSES = "import sys; print('kernelwright: There is no such device.\\n  Name another.', file=sys.stderr); sys.exit(2)"
SLEEPS = "import pathlib, os, sys, time; pathlib.Path('pid').write_text(str(os.getpid())); time.sleep(60)"
TOKEN = "a-token"


def _server(root: Path, program: str = ECHO, *, jobs: int = 2, queue: int = 16) -> MCPServer[Any]:
    from kernelwright.mcp_server.server import Limits, build_server

    (root / "problem.py").write_text("def f(x):\n    return x\n")
    (root / "kernel.py").write_text("class ModelNew: ...\n")
    commands = Commands(root, root / "home", jobs, queue, (sys.executable, "-c", program))
    return build_server(Places(root, root / "home"), commands, Limits())


def _client(server: Any) -> Client:
    from mcp import Client

    return Client(server)


async def _called(server: MCPServer[Any], tool: str, **given: Any) -> Any:
    async with _client(server) as client:
        return await client.call_tool(tool, given)


def _refused(server: MCPServer[Any], tool: str, **given: Any) -> str:
    found = asyncio.run(_called(server, tool, **given))
    assert found.is_error
    return str(found.content[0].text)


def test_every_tool_says_what_it_does_and_takes(tmp_path: Path) -> None:
    """An agent finds the seven tools with words for each and for its parameters."""

    async def listed() -> Any:
        async with _client(_server(tmp_path)) as client:
            return (await client.list_tools()).tools

    tools = {tool.name: tool for tool in asyncio.run(listed())}
    assert set(tools) == {"evaluate", "profile", "verify", "explain", "search_memory", "optimize", "trace"}
    assert all(tool.description for tool in tools.values())
    assert "below the server's root" in tools["evaluate"].input_schema["properties"]["problem"]["description"]
    assert "ctx" not in tools["optimize"].input_schema["properties"]


def test_a_call_is_the_command_with_the_same_words(tmp_path: Path) -> None:
    """`evaluate` runs the command of that name on both files, and its JSON is the answer."""
    found = asyncio.run(_called(_server(tmp_path), "evaluate", problem="problem.py", kernel="kernel.py", target="a100"))
    words = found.structured_content["words"]
    assert words[:2] == ["evaluate", "--json"]
    assert "--target=a100" in words
    assert words[-3:] == ["--", str(tmp_path / "problem.py"), str(tmp_path / "kernel.py")]


def test_a_kernel_may_come_as_text(tmp_path: Path) -> None:
    """A source without a file is judged, too, from a file that is gone afterwards."""
    found = asyncio.run(_called(_server(tmp_path), "evaluate", problem="problem.py", kernel_text="class ModelNew: ..."))
    assert not Path(found.structured_content["words"][-1]).exists()


def test_progress_comes_with_the_lines_of_a_run(tmp_path: Path) -> None:
    """Each line of `optimize` reaches the agent, and evaluations move the bar."""
    seen: list[tuple[float, float | None, str | None]] = []

    async def told(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async def run() -> Any:
        async with _client(_server(tmp_path)) as client:
            return await client.call_tool("optimize", {"problem": "problem.py", "budget": 4}, progress_callback=told)

    found = asyncio.run(run())
    assert found.structured_content["words"][0] == "optimize"
    assert seen == [(1.0, 4.0, "1.0s evaluate  abc PASS")]


@pytest.mark.parametrize("path", ["../outside.py", "/etc/passwd", "link.py", "deep/../../outside.py", "\0", "missing.py"])
def test_files_outside_of_the_root_cannot_be_named(tmp_path: Path, path: str) -> None:
    """A path that leads out of the root, by dots, from the top or by a link, is refused, and nothing is run."""
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "outside.py").write_text("secret")
    (root / "link.py").symlink_to(tmp_path / "outside.py")
    said = _refused(_server(root), "evaluate", problem=path, kernel="kernel.py")
    assert str(root) in said
    assert "secret" not in said


def test_a_source_nobody_could_read_is_refused(tmp_path: Path) -> None:
    """A hundred megabytes are refused by their size, unread."""
    server = _server(tmp_path)
    with (tmp_path / "huge.py").open("wb") as file:
        file.truncate(100_000_000)
    assert str(LARGEST_BYTES) in _refused(server, "explain", problem="huge.py")
    assert str(LARGEST_BYTES) in _refused(server, "evaluate", problem="problem.py", kernel_text="x" * (LARGEST_BYTES + 1))


def test_what_a_command_refuses_reaches_the_agent_in_its_words(tmp_path: Path) -> None:
    """The command's own line and its mend are the error's text."""
    assert "There is no such device. Name another." in _refused(_server(tmp_path, REFUSES), "explain", problem="problem.py", target="x")


@pytest.mark.parametrize("more", [{"budget": 65}, {"minutes": 61.0}, {"model": "gpt-5"}])
def test_a_run_cannot_spend_more_than_the_server_allows(tmp_path: Path, more: dict[str, Any]) -> None:
    """Evaluations, minutes and money of a run are bounded by whoever started the server."""
    said = _refused(_server(tmp_path), "optimize", problem="problem.py", **more)
    assert "64 evaluations and 60 minutes" in said or "pays for no language models" in said


def test_calls_wait_in_line_and_too_many_are_turned_away(tmp_path: Path) -> None:
    """Of four calls at once where one works and one waits, two get a line that says so."""

    async def four() -> list[Any]:
        async with _client(_server(tmp_path, jobs=1, queue=1)) as client:
            return await asyncio.gather(*(client.call_tool("explain", {"problem": "problem.py"}) for _ in range(4)))

    found = asyncio.run(four())
    assert [one.is_error for one in found].count(True) == 2
    assert all("under way or wait" in one.content[0].text for one in found if one.is_error)


def test_a_cancelled_call_leaves_no_process(tmp_path: Path) -> None:
    """Where an agent gives up, the command is stopped."""

    async def given_up() -> int:
        commands = Commands(tmp_path, tmp_path / "home", 1, program=(sys.executable, "-c", SLEEPS))
        call = asyncio.create_task(commands.run("optimize"))
        for _ in range(1000):
            await asyncio.sleep(0.01)
            if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
                break
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        return int((tmp_path / "pid").read_text())

    pid = asyncio.run(given_up())
    assert not Path(f"/proc/{pid}/cmdline").exists() or not Path(f"/proc/{pid}/cmdline").read_bytes()


def test_an_agent_starts_the_server_over_standard_input(tmp_path: Path) -> None:
    """`kernelwright mcp` answers the SDK's client; a run that there is none of is one line."""
    from mcp import StdioServerParameters

    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "kernelwright", "mcp", "--root", str(tmp_path), "--home", str(tmp_path / "home")],
        env={"PYTHONPATH": str(HOME), "PATH": "/usr/bin:/bin"},
    )

    async def asked() -> Any:
        async with _client(parameters) as client:
            return await client.call_tool("trace", {"run": "softmax"})

    assert "There is no run 'softmax'" in asyncio.run(asked()).content[0].text


def test_runs_and_their_kernels_are_resources(tmp_path: Path) -> None:
    """The runs, the trace of one and its delivered kernel can be read; a run without a kernel says so."""
    from mcp.shared.exceptions import MCPError

    folder = tmp_path / "home" / "runs" / "softmax-1"
    (folder / "result").mkdir(parents=True)
    (folder / "run.db").touch()

    async def read(uri: str) -> str:
        async with _client(_server(tmp_path)) as client:
            try:
                return str((await client.read_resource(uri)).contents[0].text)
            except MCPError as error:
                return str(error)

    assert json.loads(asyncio.run(read("kernelwright://runs"))) == {"words": ["runs", "--json"]}
    assert json.loads(asyncio.run(read("kernelwright://runs/softmax-1"))) == {"words": ["trace", "--json", "--", "softmax-1"]}
    assert asyncio.run(read("kernelwright://runs/softmax-1/kernel")) == "The run softmax-1 has delivered no kernel."
    (folder / "result" / "kernel.py").write_text("class ModelNew: ...")
    assert asyncio.run(read("kernelwright://runs/softmax-1/kernel")) == "class ModelNew: ..."


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Where a server over HTTP listens."""
    from kernelwright.mcp_server.http import PATH, with_token

    listening = listen("127.0.0.1", 0)
    app = with_token(_server(tmp_path).streamable_http_app(streamable_http_path=PATH), TOKEN)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}{PATH}"
    server.should_exit = True
    thread.join()


def test_http_answers_who_knows_the_token(address: str) -> None:
    """The SDK's client works over HTTP with the token; without it every request is refused."""

    async def asked() -> Any:
        from mcp.client.streamable_http import streamable_http_client

        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as http,
            _client(streamable_http_client(address, http_client=http)) as client,
        ):
            return await client.call_tool("explain", {"problem": "problem.py"})

    assert asyncio.run(asked()).structured_content["words"][0] == "explain"
    assert httpx2.post(address, json={}).status_code == 401
    assert httpx2.post(address, json={}, headers={"Authorization": "Bearer guess"}).status_code == 401


def test_a_port_in_use_is_one_line() -> None:
    """A port that somebody has is named, with what to do."""
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        found = CliRunner().invoke(app, ["mcp", "--port", str(port)])
    assert f"Port {port}" in str(found.exception)


def test_the_skill_page_names_only_tools_that_there_are() -> None:
    """`--skill` prints a page with a heading that agents read, about tools that exist."""
    said = CliRunner().invoke(app, ["mcp", "--skill"]).output
    assert said.startswith("---\nname: kernelwright\n")
    assert all(f"`{tool}`" in said for tool in ("explain", "optimize", "evaluate", "profile", "search_memory"))
