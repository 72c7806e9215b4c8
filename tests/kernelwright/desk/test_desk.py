"""`kernelwright desk`, asked by real clients over loopback."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uvicorn
from starlette.testclient import TestClient
from typer.testing import CliRunner

from agents.models import ChatModel, Message, ModelSettings, ModelUnavailable, ToolSpec, check_model
from kernelwright.cli.app import app
from kernelwright.desk.app import build_desk
from kernelwright.desk.counting import TURN_TOKENS, counter
from kernelwright.desk.folder import DeskFolder
from tools.errors import UserError
from tools.listening import listen

QUESTION = (Message(role="system", content="You are the planner."), Message(role="user", content="Which block?"))
Open = Callable[[], tuple[str, list[str]]]


@pytest.fixture
def open_desk(tmp_path: Path) -> Iterator[Open]:
    """Serve the folder `tmp_path`: the address, and what is said to who answers; each call is a desk of its own."""
    running: list[tuple[uvicorn.Server, threading.Thread]] = []

    def start() -> tuple[str, list[str]]:
        said: list[str] = []
        listening = listen("127.0.0.1", 0)
        config = uvicorn.Config(build_desk(DeskFolder(tmp_path), said.append), log_level="critical", lifespan="off", ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        running.append((server, thread))
        return f"http://127.0.0.1:{listening.getsockname()[1]}/v1", said

    yield start
    for server, thread in running:
        server.should_exit = True
        thread.join(timeout=5)


def client(url: str, **fields: object) -> ChatModel:
    """Ask the desk at `url` as any model server."""
    given = {"name": "desk", "base_url": url, "timeout_s": 10, "retries": 0, **fields}
    return ChatModel(ModelSettings.model_validate(given))


def put(path: Path, text: str, beside: Path) -> None:
    """Write an answer once its question is there."""
    for _ in range(200):
        if beside.is_file():
            break
        time.sleep(0.02)
    path.write_text(text)


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_an_answer_from_a_file(open_desk: Open, tmp_path: Path, api: str) -> None:
    """On either endpoint a question is a page with every turn, and the file beside it is the answer."""
    url, said = open_desk()
    model = client(url, api=api)
    asked = asyncio.create_task(model.ask("planner", QUESTION))
    await asyncio.to_thread(put, tmp_path / "0001.answer.md", "128, since rows are short.", tmp_path / "0001.request.json")
    answer = await asked
    await model.close()
    assert (answer.text, answer.usage.counted) == ("128, since rows are short.", False)
    page = (tmp_path / "0001.prompt.md").read_text()
    assert "# system\n\nYou are the planner.\n\n# user\n\nWhich block?" in page
    assert said == [f"0001 is waiting for {tmp_path / '0001.answer.md'}", "0001 is answered"]


async def test_the_same_question_is_asked_once(open_desk: Open, tmp_path: Path) -> None:
    """A client that gave up gets, when it asks again at a desk that was started anew, the answer to the first question."""
    url, said = open_desk()
    impatient = client(url, timeout_s=0.3)
    with pytest.raises(ModelUnavailable):
        await impatient.ask("planner", QUESTION)
    await impatient.close()
    (tmp_path / "0001.answer.md").write_text("128")
    again = client(open_desk()[0])
    assert (await again.ask("planner", QUESTION)).text == "128"
    await again.close()
    assert not (tmp_path / "0002.prompt.md").exists()
    assert "0001 was given up by who asked; its answer is kept for when it is asked again" in said


async def test_calls_of_tools(open_desk: Open, tmp_path: Path) -> None:
    """A file of calls is an answer that calls them; one that cannot be read is put aside with what is wrong, and the next counts."""
    url, said = open_desk()
    (tmp_path / "0001.calls.json").write_text("compile it")
    model = client(url)
    asked = asyncio.create_task(model.ask_with_tools("coder", QUESTION, (ToolSpec(name="compile", description="c", parameters={}),)))
    await asyncio.to_thread(
        put, tmp_path / "0001.calls.json", '{"name": "compile", "arguments": {"source": "x"}}', tmp_path / "0001.calls.wrong"
    )
    (call,) = (await asked).calls
    await model.close()
    assert (call.name, json.loads(call.arguments)) == ("compile", {"source": "x"})
    assert any("0001.calls.json is no call: write" in line for line in said)


async def test_the_look_before_a_run_finds_it(open_desk: Open) -> None:
    """It lists its model, so that a run starts, and another name is refused with what there is."""
    url, _ = open_desk()
    assert not (await check_model(ModelSettings(name="desk", base_url=url))).note
    with pytest.raises(UserError, match="Choose one of: desk"):
        await check_model(ModelSettings(name="dusk", base_url=url))


@pytest.mark.parametrize(
    ("body", "headers", "what"),
    [
        (b"{}", {"content-type": "text/plain"}, "Send application/json"),
        (b"{}", {"host": "elsewhere.example"}, "Invalid host"),
        (b'{"messages": [], "stream": true}', {}, "not streamed"),
        (b"{", {}, "no JSON"),
        (b"[]", {}, "neither messages nor input"),
    ],
)
def test_what_is_no_question_is_refused(tmp_path: Path, body: bytes, headers: dict[str, str], what: str) -> None:
    """Pages in a browser, other names of this machine and broken requests leave no file."""
    asks = TestClient(build_desk(DeskFolder(tmp_path), print), base_url="http://127.0.0.1")
    refused = asks.post("/v1/chat/completions", content=body, headers={"content-type": "application/json", **headers})
    assert refused.status_code == 400
    assert what in refused.text
    assert not list(tmp_path.iterdir())


def test_an_answer_that_is_being_written_is_not_read(tmp_path: Path) -> None:
    """An empty file, and one that has just changed, is none yet."""
    folder = DeskFolder(tmp_path)
    number, _ = folder.number({"messages": [], "model": "m"})
    path = folder.file(number, ".answer.md")
    path.touch()
    assert folder.answer(number) is None
    path.write_text("half")
    assert folder.answer(number) is None
    time.sleep(0.35)
    assert folder.answer(number) == ("half", ())


def test_a_folder_that_cannot_be_is_one_line(tmp_path: Path) -> None:
    """A file in its place is the user's to mend."""
    (tmp_path / "taken").touch()
    done = CliRunner().invoke(app, ["desk", "--folder", str(tmp_path / "taken")])
    assert isinstance(done.exception, UserError)
    assert "cannot be made" in done.exception.what


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_tokens_are_counted_where_asked(tmp_path: Path, api: str) -> None:
    """A desk with a counter states the tokens of question and answer on either endpoint, so that a run can count money."""
    (tmp_path / "0001.answer.md").write_text("128 rows")
    os.utime(tmp_path / "0001.answer.md", (0, 0))
    desk = TestClient(build_desk(DeskFolder(tmp_path), print, lambda text: len(text.split())), base_url="http://127.0.0.1")
    turns = [{"role": "system", "content": "You are the planner."}, {"role": "user", "content": "Which block?"}]
    if api == "chat":
        stated = desk.post("/v1/chat/completions", json={"messages": turns}).json()["usage"]
        assert (stated["prompt_tokens"], stated["completion_tokens"]) == (6 + 2 * TURN_TOKENS, 2)
    else:
        stated = desk.post("/v1/responses", json={"input": turns}).json()["usage"]
        assert (stated["input_tokens"], stated["output_tokens"]) == (6 + 2 * TURN_TOKENS, 2)


def test_an_unknown_encoding() -> None:
    """An encoding that there is not is a user's error that names two that there are."""
    with pytest.raises(UserError, match="no encoding") as caught:
        counter("klingon")
    assert "o200k_base" in str(caught.value)


@pytest.mark.parametrize("end", ["", "/", "/v1/chat/completions"])
def test_an_address_with_another_end_is_told_the_right_one(open_desk: Open, end: str) -> None:
    """Without `/v1`, or with the page that questions go to, it is refused before a run, and the address that serves models is named."""
    url, _ = open_desk()
    given = f"{url.removesuffix('/v1')}{end}"
    with pytest.raises(UserError, match="No model server answers") as caught:
        asyncio.run(check_model(ModelSettings(name="desk", base_url=given)))
    assert caught.value.mend == f"Give --base-url {url}."


def test_an_address_without_its_protocol_is_none() -> None:
    """What is missing is named, and nobody is asked."""
    with pytest.raises(UserError, match="'localhost:8000/v1' is no address") as caught:
        asyncio.run(check_model(ModelSettings(name="desk", base_url="localhost:8000/v1")))
    assert "http://localhost:8000/v1" in caught.value.mend
