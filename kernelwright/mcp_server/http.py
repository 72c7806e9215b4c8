"""Serves tools over HTTP, to those who know a token."""

from __future__ import annotations

import hmac
import socket
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

PATH = "/mcp"
LARGEST_BODY = 4_000_000
"""Bytes of a request; a source in it has a smaller limit of its own."""


def serve(server: MCPServer[Any], listening: socket.socket, token: str) -> None:
    """Answer on an open socket until stopped."""
    app = with_token(server.streamable_http_app(streamable_http_path=PATH, max_request_body_size=LARGEST_BODY), token)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])


def with_token(app: ASGIApp, token: str) -> ASGIApp:
    """Refuse every request that does not carry `token` as its bearer."""
    wanted = f"Bearer {token}".encode()

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        given = dict(scope.get("headers", ())).get(b"authorization", b"")
        if scope["type"] == "http" and not hmac.compare_digest(given, wanted):
            await PlainTextResponse("Send the server's token: Authorization: Bearer TOKEN\n", status_code=401)(scope, receive, send)
            return
        await app(scope, receive, send)

    return guarded
