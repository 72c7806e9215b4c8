"""Who is let in, what a page may load, and which forms are taken."""

from __future__ import annotations

import hmac
import secrets
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from tools.errors import UserError

COOKIE = "kernelwright-token"
POLICY = "; ".join(
    (
        "default-src 'self'",
        "img-src 'self' data:",
        "style-src 'self' 'unsafe-inline'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
"""No script but our own file runs, whatever a candidate's source or a model's answer holds."""
LONGEST_FORM = 20_000
"""Bytes."""


class Guard:
    """Lets nobody in without the token, and lets no page run or show anything from elsewhere."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        """Ask for `token` where it is not empty."""
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        given = request.query_params.get("token", "") or request.cookies.get(COOKIE, "")
        if self._token and not hmac.compare_digest(given.encode(), self._token.encode()):
            refusal = "This page needs its token: open the address that `kernelwright ui` printed.\n"
            await PlainTextResponse(refusal, status_code=401)(scope, receive, send)
            return
        if self._token and "token" in request.query_params:
            moved = RedirectResponse(request.url.path)
            moved.set_cookie(COOKIE, self._token, httponly=True, samesite="strict")
            await moved(scope, receive, send)
            return
        await self._app(scope, receive, _with_headers(send))


class Forms:
    """Takes forms that our own pages hold: each has a word that no other site's page can know."""

    def __init__(self) -> None:
        """Choose the word anew for each process."""
        self.word = secrets.token_urlsafe(18)

    async def read(self, request: Request) -> dict[str, str]:
        """Read the fields; UserError where the form is not of one of our pages, or too long."""
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > LONGEST_FORM:
                raise UserError("What was sent is too long.", f"A form has at most {LONGEST_FORM:,} bytes.")
        fields = {name: values[-1] for name, values in parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True).items()}
        origin = request.headers.get("origin", "")
        foreign = bool(origin) and urlsplit(origin).netloc != request.headers.get("host", "")
        if foreign or not hmac.compare_digest(fields.get("word", "").encode(), self.word.encode()):
            raise UserError("This form is not of a page that this server has shown.", "Load the run's page again, and send it from there.")
        return fields


def _with_headers(send: Send) -> Send:
    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            more = {"content-security-policy": POLICY, "x-content-type-options": "nosniff", "referrer-policy": "same-origin"}
            message["headers"] = [*message["headers"], *((name.encode(), value.encode()) for name, value in more.items())]
        await send(message)

    return sending
