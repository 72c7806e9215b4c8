"""The addresses of a desk, as an ASGI application: OpenAI's list of models, chat completions and Responses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kernelwright.desk.counting import Count, usage
from kernelwright.desk.folder import TEXT, Body, DeskFolder, Given, Unreadable
from kernelwright.desk.replies import completion, models, refusal, response

LOCAL_NAMES = ("127.0.0.1", "localhost")
LOOK_S = 0.1
"""Between two looks for an answer."""
MOST_BYTES = 32 << 20
"""Of a request: many times the longest prompt that any model takes."""
Say = Callable[[str], None]


def build_desk(folder: DeskFolder, say: Say, count: Count | None = None) -> Starlette:
    """Make the application over a folder; `say` hears of each question, and of each answer that was sent.

    With `count` each answer states the tokens of its question and its own.
    """
    desk = _Desk(folder, say, count)
    routes = [
        Route("/v1/models", lambda request: JSONResponse(models())),
        Route("/v1/chat/completions", desk.chat, methods=["POST"]),
        Route("/v1/responses", desk.responses, methods=["POST"]),
    ]
    return Starlette(routes=routes, middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=list(LOCAL_NAMES))])


class _Desk:
    """Puts questions into the folder and waits for their answers."""

    def __init__(self, folder: DeskFolder, say: Say, count: Count | None) -> None:
        self._folder = folder
        self._say = say
        self._count = count

    async def chat(self, request: Request) -> Response:
        """Answer on chat completions."""
        return await self._answer(request, completion)

    async def responses(self, request: Request) -> Response:
        """Answer on Responses."""
        return await self._answer(request, response)

    async def _answer(self, request: Request, form: Callable[[int, Body, Given, dict[str, int] | None], Body]) -> Response:
        asked = await _read(request)
        if isinstance(asked, str):
            return JSONResponse(refusal(asked), 400)
        number, new = self._folder.number(asked)
        known = self._given(number)
        if known is None:
            waits = "is waiting for" if new else "is asked again and waits for"
            self._say(f"{number:04d} {waits} {self._folder.file(number, TEXT)}")
        given = known or await self._wait(request, number)
        if given is None:
            self._say(f"{number:04d} was given up by who asked; its answer is kept for when it is asked again")
            return Response(status_code=499)
        self._say(f"{number:04d} is answered")
        used = usage(asked, given, self._count) if self._count else None
        return JSONResponse(form(number, asked, given, used))

    async def _wait(self, request: Request, number: int) -> Given | None:
        """Look for an answer as long as somebody waits for it."""
        while not await request.is_disconnected():
            if (given := self._given(number)) is not None:
                return given
            await asyncio.sleep(LOOK_S)
        return None

    def _given(self, number: int) -> Given | None:
        """Read an answer; of one that cannot be used it is said once what is wrong, and the next is waited for."""
        try:
            return self._folder.answer(number)
        except Unreadable as error:
            self._say(f"{error} It was put aside as .wrong.")
            self._folder.put_aside(number)
            return None


async def _read(request: Request) -> Body | str:
    """Read a request, or say what is wrong with it."""
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
        # a page in a browser cannot send this kind to another address
        return "Send application/json."
    if int(request.headers.get("content-length") or MOST_BYTES + 1) > MOST_BYTES:
        return f"A request has its content-length, and at most {MOST_BYTES >> 20} MiB."
    try:
        asked = json.loads(await request.body())
    except ValueError:
        return "The request is no JSON."
    if not isinstance(asked, dict) or not ("messages" in asked or "input" in asked):
        return "The request has neither messages nor input."
    return "Answers are not streamed: ask without stream." if asked.get("stream") else asked
