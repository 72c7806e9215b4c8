"""What LangSmith is sent by LangChain: nothing without its own variables; with them the graph, named after the run, and no key."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import langsmith.run_trees
import langsmith.utils
import pytest
from langchain_core.tracers.langchain import wait_for_all_tracers

from agents import TeamSettings
from tests.agents.models.playing import EVERY, model_settings, play
from tests.support.scenarios import block_team
from tests.support.scripted_rules import Scenario
from tests.support.scripted_server import ScriptedServer

KEYS = {"LANGSMITH_API_KEY": "lsv2_pt_planted-key-of-langsmith", "KERNELWRIGHT_API_KEY": "planted-key-of-the-model"}


class LangSmith:
    """A server that takes whatever is posted."""

    def __init__(self) -> None:
        """Listen on a free port."""
        self.bodies: list[bytes] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(b"{}")

            def do_POST(self) -> None:
                server.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
                self._answer(b"{}")

            def do_PATCH(self) -> None:
                self.do_POST()

            def _answer(self, body: bytes) -> None:
                self.send_response(202)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"


@pytest.fixture
def langsmith_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[LangSmith]:
    """The server, named by LangSmith's variables, with keys planted; its client is this test's own."""
    found = LangSmith()
    threading.Thread(target=found.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    monkeypatch.setattr(langsmith.run_trees, "_CLIENT", None)
    for name, value in (KEYS | {"LANGSMITH_ENDPOINT": found.url}).items():
        monkeypatch.setenv(name, value)
    for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
        monkeypatch.delenv(name, raising=False)
    langsmith.utils.get_env_var.cache_clear()
    yield found
    langsmith.utils.get_env_var.cache_clear()
    found.http.shutdown()
    found.http.server_close()


def _played(folder: Path) -> None:
    """See a run through in which a model plays every role."""
    with ScriptedServer(Scenario(rules=block_team())) as server:
        team = TeamSettings(model=model_settings(server), team="full", roles=EVERY)
        asyncio.run(play(folder, team)).store.close()
    wait_for_all_tracers()


def test_nothing_is_sent_without_its_variable(tmp_path: Path, langsmith_server: LangSmith) -> None:
    """An endpoint and a key alone ask for nothing."""
    _played(tmp_path / "scripted")
    assert langsmith_server.bodies == []


def test_a_run_is_named_and_holds_no_key(tmp_path: Path, langsmith_server: LangSmith, monkeypatch: pytest.MonkeyPatch) -> None:
    """The trace is called after the problem, its parts after nodes and roles, its metadata say the run; keys are in none of it."""
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    langsmith.utils.get_env_var.cache_clear()
    _played(tmp_path / "scripted")
    sent = b"".join(langsmith_server.bodies)
    for name in ("kernelwright optimize exp", "measure", "recall", "plan", "refine", "review", "learn", "confirm", "planner", "coder"):
        assert f'"name":"{name}"'.encode() in sent
    assert b'"metadata":{"run":"scripted","problem":"exp","target":"h200"' in sent
    assert [key for key in KEYS.values() if key.encode() in sent] == []
