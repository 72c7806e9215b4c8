"""A real HTTP server on loopback that speaks OpenAI's protocols from a scenario: models without a model.

As a library: `with ScriptedServer(Scenario(rules=[...])) as server: ... server.url`. As a program, for whole-run tests:
`python -m tests.support.scripted_server --scenario FILE --port 0 --log FILE`; it prints its URL, and writes one JSON line to
the log for every request received and again when it is answered or abandoned, so that another process can count them.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import re
import socket
import string
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from tests.support.scripted_replies import completion, error, last_user, refused, response, role_of
from tests.support.scripted_rules import Rule, Scenario


class Entry(BaseModel):
    """One request as the server saw it."""

    number: int
    role: str
    state: Literal["received", "answered", "abandoned"] = "received"
    status: int = 0
    rule: int | None = None
    """Index of the rule that answered."""
    body_hash: str
    authorization: str = ""
    body: dict[str, Any] = Field(default_factory=dict)
    """Left out of the log file."""


class ScriptedServer:
    """Serves one scenario on a free loopback port, and remembers every request."""

    def __init__(self, scenario: Scenario | None = None, port: int = 0, log: Path | None = None) -> None:
        """Bind the port; `start` serves."""
        self.scenario = scenario or Scenario()
        self.requests: list[Entry] = []
        self.stopping = threading.Event()
        self._log = log
        self._lock = threading.Lock()
        self._used: dict[int, int] = {}
        self._http = _Http(("127.0.0.1", port), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        """Base URL for a client."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def start(self) -> ScriptedServer:
        """Serve in threads of this process."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """Let go of every hanging request and close the port."""
        self.stopping.set()
        self._http.shutdown()
        self._http.hang_up()
        self._http.server_close()
        self._thread.join(timeout=5)

    def __enter__(self) -> ScriptedServer:
        """Start."""
        return self.start()

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.stop()

    def count(self, role: str = "", state: str = "") -> int:
        """Count the requests of a role and state; empty matches any."""
        with self._lock:
            return sum((not role or e.role == role) and (not state or e.state == state) for e in self.requests)

    def last_user(self, number: int = -1) -> str:
        """Last user message of a request."""
        return last_user(self.requests[number].body)

    def receive(self, body: dict[str, Any], raw: bytes, authorization: str) -> Entry:
        """Take down a request."""
        with self._lock:
            entry = Entry(
                number=len(self.requests),
                role=role_of(body),
                body_hash=hashlib.sha256(raw).hexdigest()[:16],
                authorization=authorization,
                body=body,
            )
            self.requests.append(entry)
            self._write(entry)
            return entry

    def finish(self, entry: Entry, state: Literal["answered", "abandoned"], status: int) -> None:
        """Take down how a request ended."""
        with self._lock:
            entry.state, entry.status = state, status
            self._write(entry)

    def choose(self, entry: Entry) -> tuple[Rule, str]:
        """Pick the rule for a request and fill in its answer."""
        text = last_user(entry.body)
        with self._lock:
            for index, rule in enumerate(self.scenario.rules):
                found = re.search(rule.match, text, re.DOTALL | re.MULTILINE)
                if found is None or (rule.role and rule.role != entry.role) or (rule.uses and self._used.get(index, 0) >= rule.uses):
                    continue
                self._used[index] = self._used.get(index, 0) + 1
                entry.rule = index
                return rule, string.Template(rule.answer).safe_substitute({k: v or "" for k, v in found.groupdict().items()})
        return Rule(status=400, message=f"no rule for the {entry.role or 'unnamed role'}: {text[:200]}"), ""

    def _write(self, entry: Entry) -> None:
        if self._log is not None:
            with self._log.open("a") as file:
                file.write(entry.model_dump_json(exclude={"body", "authorization"}) + "\n")


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    owner: ScriptedServer

    def __init__(self, *args: Any) -> None:
        self.connections: set[socket.socket] = set()
        super().__init__(*args)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Keep the connection in mind, as a client may hold it open between requests."""
        self.connections.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        """Forget a connection that has ended."""
        self.connections.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """End every connection, as a server that dies does."""
        for connection in tuple(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is part of the scenario, not an error to print."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # an answer is sent in two parts: the second would wait 40 ms for the client to acknowledge the first
    disable_nagle_algorithm = True
    server: _Http
    _entry: Entry | None = None

    def send_response(self, code: int, message: str | None = None) -> None:
        """Begin an answer; its status is known before the client can have it."""
        if self._entry is not None:
            self._entry.status = code
        super().send_response(code, message)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Print nothing."""

    def do_GET(self) -> None:
        """List the models."""
        self._entry = None
        scenario = self.server.owner.scenario
        if scenario.key is not None and scenario.key not in (self.headers.get("authorization") or "").removeprefix("Bearer "):
            self._json(401, error("Incorrect API key provided.", "invalid_api_key"))
        elif self.path.partition("?")[0].rstrip("/").endswith("/models") and scenario.lists_models:
            fields = {"object": "model", "created": 0, "owned_by": "t", **scenario.entry}
            self._json(200, {"object": "list", "data": [{"id": m, **fields} for m in scenario.models]})
        else:
            self._json(404, {"error": {"message": "no such page"}})

    def do_POST(self) -> None:
        """Answer a chat completion or a response."""
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        owner, body = self.server.owner, json.loads(raw)
        entry = owner.receive(body, raw, self.headers.get("authorization") or self.headers.get("api-key") or "")
        self._entry, status = entry, 0
        try:
            status = self._answer(owner, entry, body)
            owner.finish(entry, "answered" if status else "abandoned", status)
        except OSError:
            owner.finish(entry, "abandoned", status)

    def _answer(self, owner: ScriptedServer, entry: Entry, body: dict[str, Any]) -> int:
        if complaint := refused(owner.scenario, entry.authorization, body, self.path):
            return self._json(*complaint)
        rule, answer = owner.choose(entry)
        if rule.delay_s and self._client_left(owner, rule.delay_s):
            return 0
        if rule.fault in ("hang", "close", "garbage", "html", "trickle", "endless"):
            return self._break(owner, rule.fault)
        if rule.status != 200:
            headers = {"Retry-After": rule.retry_after} if rule.retry_after is not None else {}
            return self._json(rule.status, error(rule.message, rule.code), headers)
        if body.get("stream"):
            return self._stream(body, rule, answer)
        whole = response(body, rule, answer) if self.path.endswith("/responses") else completion(body, rule, answer)
        return self._json(200, whole)

    def _break(self, owner: ScriptedServer, fault: str) -> int:
        if fault == "hang":
            self._client_left(owner, 3600)
        elif fault == "trickle":
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", "100000")
            self.end_headers()
            while not owner.stopping.wait(0.05):
                self.wfile.write(b" ")
        elif fault == "endless":
            return self._send(200, "application/json", b" " * (6 << 20))
        elif fault == "garbage":
            return self._send(200, "application/json", b'{"choices": [{"mess')
        elif fault == "html":
            return self._send(200, "text/html", b"<html><body>It works!</body></html>")
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        return 0

    def _client_left(self, owner: ScriptedServer, seconds: float) -> bool:
        """Wait; True as soon as the client hangs up or the server stops."""
        self.connection.settimeout(0.02)
        end = time.monotonic() + seconds
        try:
            while time.monotonic() < end:
                if owner.stopping.is_set():
                    return True
                with contextlib.suppress(TimeoutError):
                    if not self.connection.recv(1, socket.MSG_PEEK):
                        return True
            return False
        except OSError:
            return True
        finally:
            self.connection.settimeout(None)

    def _json(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> int:
        return self._send(status, "application/json", json.dumps(body).encode(), headers)

    def _send(self, status: int, kind: str, body: bytes, headers: dict[str, str] | None = None) -> int:
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        return status

    def _stream(self, body: dict[str, Any], rule: Rule, answer: str) -> int:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        whole = completion(body, rule, answer)
        pieces = [answer[i : i + 40] for i in range(0, len(answer), 40)]
        for delta in ({"role": "assistant", "content": ""}, *({"content": p} for p in pieces)):
            self._event(whole, [{"index": 0, "delta": delta, "finish_reason": None}])
        self._event(whole, [{"index": 0, "delta": {}, "finish_reason": whole["choices"][0]["finish_reason"]}])
        if (body.get("stream_options") or {}).get("include_usage") and "usage" in whole:
            self._event(whole, [], usage=whole["usage"])
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True
        return 200

    def _event(self, whole: dict[str, Any], choices: list[dict[str, Any]], **more: Any) -> None:
        chunk = {"id": whole["id"], "object": "chat.completion.chunk", "created": 0, "model": whole["model"], "choices": choices, **more}
        self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        self.wfile.flush()


def main() -> None:
    """Serve a scenario file until killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path)
    given = parser.parse_args()
    scenario = Scenario.model_validate_json(given.scenario.read_text())
    with ScriptedServer(scenario, given.port, given.log) as server:
        print(server.url, flush=True)  # noqa: T201 - how another process learns the port
        threading.Event().wait()


if __name__ == "__main__":
    main()
