"""The scripted server itself: a test double must be as strict as what it stands for."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents.models import Message
from agents.planner.builtin import BuiltinPlanner
from agents.planner.llm import LLMPlanner
from agents.planner.protocol import Tried
from agents.samples import case as samples
from tests.agents.conftest import Ask, Serve
from tests.support.scenarios import whole_team
from tests.support.scripted_rules import Rule, Scenario

QUESTION = [Message(role="system", content="You are the planner of a test."), Message(role="user", content="Options: 12, 13.")]


async def test_rules_in_order_and_uses(serve: Serve, model: Ask) -> None:
    """The first rule that fits and has uses left answers; named groups of its expression fill its answer."""
    server = serve(
        Rule(role="coder", answer="no"), Rule(match=r"Options: (?P<first>\d+)", answer="take ${first}", uses=1), Rule(answer="x")
    )
    chat = model(server)
    assert (await chat.ask("planner", QUESTION, purpose="a")).text == "take 12"
    assert (await chat.ask("planner", QUESTION, purpose="b")).text == "x"
    assert [e.rule for e in server.requests] == [1, 2]
    assert server.requests[0].body_hash == server.requests[1].body_hash


async def test_streams(serve: Serve) -> None:
    """A client that streams gets the same text in pieces, and the usage at the end."""
    from langchain_openai import ChatOpenAI
    from openai import DefaultAsyncHttpxClient

    server = serve(Rule(answer="word " * 40))
    async with DefaultAsyncHttpxClient() as http:
        client = ChatOpenAI(model="scripted", base_url=server.url, api_key="x", http_async_client=http, stream_usage=True)
        pieces = [piece async for piece in client.astream("hello")]
    assert "".join(str(p.content) for p in pieces) == "word " * 40
    assert len([p for p in pieces if p.content]) > 2
    assert any(p.usage_metadata for p in pieces)


@pytest.fixture
def process(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """Run the server in a process of its own: its URL and its log."""
    scenario = Scenario(rules=[Rule(answer="from afar", uses=1), Rule(status=500)])
    (tmp_path / "scenario.json").write_text(scenario.model_dump_json())
    command = [sys.executable, "-m", "tests.support.scripted_server", "--scenario", str(tmp_path / "scenario.json"), "--log"]
    with subprocess.Popen([*command, str(tmp_path / "log")], stdout=subprocess.PIPE, text=True, env={**os.environ}) as running:
        assert running.stdout is not None
        yield running.stdout.readline().strip(), tmp_path / "log"
        running.send_signal(signal.SIGKILL)


async def test_process_of_its_own(process: tuple[str, Path], model: Ask) -> None:
    """As a program it serves a scenario file and logs every request as received and as answered."""
    url, log = process
    chat = model(url, retries=0)
    assert (await chat.ask("planner", QUESTION)).text == "from afar"
    # the log says "answered" just after the answer was sent
    for _ in range(100):
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        if len(lines) > 1:
            break
        await asyncio.sleep(0.02)
    assert [(line["number"], line["role"], line["state"], line["status"]) for line in lines] == [
        (0, "planner", "received", 0),
        (0, "planner", "answered", 200),
    ]


async def test_scripted_team_plans_each_option_once(serve: Serve, model: Ask) -> None:
    """The planner for whole runs takes a listed option, never one that was tried, and stops when none is left."""
    chat = model(serve(*whole_team()))
    planner = LLMPlanner(chat, BuiltinPlanner())
    tried: list[Tried] = []
    while plans := await planner.plan(samples.briefing(tried=tuple(tried)), 1):
        assert plans[0].planner == "scripted"
        tried.append(samples.tried(plans[0].action, 1.0))
    assert {str(one.action) for one in tried} == {str(option) for option in samples.OPTIONS}
