"""A scripted server per test, and settings that ask it quickly."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from agents.models import CallStore, ChatModel, ModelSettings, PriceTable
from tests.support.scripted_rules import Rule, Scenario
from tests.support.scripted_server import ScriptedServer

Serve = Callable[..., ScriptedServer]
Ask = Callable[..., ChatModel]


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, address or proxy of the machine reaches a test."""
    for name in ("OPENAI_API_KEY", "KERNELWRIGHT_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start scripted servers: `serve(Rule(...), ..., unsupported=[...])`."""
    running: list[ScriptedServer] = []

    def start(*rules: Rule, **scenario: object) -> ScriptedServer:
        server = ScriptedServer(Scenario.model_validate({"rules": list(rules), **scenario})).start()
        running.append(server)
        return server

    yield start
    for server in running:
        server.stop()


@pytest.fixture
async def model() -> AsyncIterator[Ask]:
    """Make chat models of a scripted server: `model(server, retries=2)`."""
    made: list[ChatModel] = []

    def make(
        server: ScriptedServer | str, calls: CallStore | None = None, prices: PriceTable | None = None, **settings: object
    ) -> ChatModel:
        url = server if isinstance(server, str) else server.url
        fields = {"name": "scripted", "base_url": url, "timeout_s": 20, "backoff_s": 0.01, "retries": 2, **settings}
        made.append(ChatModel(ModelSettings.model_validate(fields), calls, prices=prices))
        return made[-1]

    yield make
    for one in made:
        await one.close()
