"""What a failed request means: worth a retry, for the user to mend, or a feature the server lacks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from agents.models.bounded import ReplyTooLongError
from agents.models.settings import ModelSettings
from tools.errors import UserError

if TYPE_CHECKING:
    from langchain_openai.chat_models.base import BaseChatOpenAI

REJECTED = (400, 422)
REFUSED_KEY = (401, 403)
TOOLS_UNREADY = "tools param requires"
"""How llama.cpp's server says, with status 500, that it was started without its chat templates."""
OTHER_ENDPOINT = "v1/responses"
"""How the hosted service says, with status 404, that a model answers elsewhere."""


@dataclass(frozen=True)
class Fault:
    """One failed request."""

    text: str
    """What happened, one sentence."""
    retry: bool = False
    wait_s: float | None = None
    """As the server asked in Retry-After; None where it did not."""
    rejected: bool = False
    """Whether the server could not take the request as it is."""
    mend: UserError | None = None
    """Set where only the user can mend it."""


async def classify(error: Exception, settings: ModelSettings, key_source: str, client: BaseChatOpenAI, answered: bool) -> Fault:
    """Sort an exception of the client; `answered` says whether this server has ever replied in this process."""
    import openai

    if (too_long := next((e for e in _chain(error) if isinstance(e, ReplyTooLongError)), None)) is not None:
        return Fault(f"{too_long}; lower max_output_tokens, or ask another model.")
    if isinstance(error, openai.APIStatusError):
        return _later(await _status(error, settings, key_source, client), answered)
    if isinstance(error, TimeoutError | openai.APITimeoutError):
        return Fault(f"no reply within {settings.timeout_s:g} s (--model-set timeout_s waits longer).", retry=True)
    if isinstance(error, openai.APIConnectionError):
        return _connection(error, settings, answered)
    return Fault(f"its reply could not be read ({type(error).__name__}: {_short(str(error))}).", retry=True)


def _later(fault: Fault, answered: bool) -> Fault:
    """What only the user can mend stops a run at its beginning; a run that has had answers goes on without, and keeps what it has."""
    return Fault(fault.mend.what) if fault.mend is not None and answered else fault


async def _status(error: Any, settings: ModelSettings, key_source: str, client: BaseChatOpenAI) -> Fault:
    status, said = int(error.status_code), _said(error)
    if status in REFUSED_KEY:
        return Fault(said, mend=_refused_key(status, said, settings, key_source))
    if status == 404 and OTHER_ENDPOINT in said:
        return Fault(f"it answers elsewhere ({said}).", rejected=True)
    if status == 404:
        return Fault(said, mend=await _no_such_model(said, settings, client))
    if status in REJECTED or (status >= 500 and TOOLS_UNREADY in said):
        return Fault(f"it rejects the request ({status}: {said}).", rejected=True)
    if status == 429 and "insufficient_quota" in f"{error.code} {said}":
        what = f"The account behind the key ({key_source}) has no quota left at {settings.endpoint}: {said}"
        return Fault(said, mend=UserError(what, "Add credit or use another key, then resume the run."))
    retry = status in (408, 409, 429) or status >= 500
    return Fault(f"it answers {status} ({said}).", retry=retry, wait_s=retry_after(error.response.headers))


def _refused_key(status: int, said: str, settings: ModelSettings, key_source: str) -> UserError:
    if key_source == "no key":
        return UserError(
            f"{settings.endpoint} needs a key ({status}: {said}).", "Set KERNELWRIGHT_API_KEY or OPENAI_API_KEY, or give a key file."
        )
    return UserError(f"{settings.endpoint} refuses the key from {key_source} ({status}: {said}).", "Put a valid key there.")


async def _no_such_model(said: str, settings: ModelSettings, client: BaseChatOpenAI) -> UserError:
    try:
        names = sorted([model.id async for model in client.root_async_client.models.list()])
    except Exception:
        names = []
    if not names or settings.name in names:
        what = f"{settings.endpoint} answers 404 for the model {settings.name!r} ({said})."
        return UserError(what, "Check --model and --base-url; the base URL of most servers ends in /v1.")
    return unknown_model(settings, names)


def unknown_model(settings: ModelSettings, names: Iterable[str]) -> UserError:
    """Say which models there are instead."""
    known = sorted(names)
    what = f"{settings.endpoint} has no model called {settings.name!r}."
    return UserError(what, f"Choose one of: {', '.join(known[:20])}{', …' if len(known) > 20 else ''}.")


def _connection(error: Exception, settings: ModelSettings, answered: bool) -> Fault:
    cause = next((e for e in _chain(error) if type(e).__name__ in ("ConnectError", "ConnectTimeout")), None)
    if cause is None or answered:
        return Fault(f"the connection was lost ({_short(str(cause or error.__cause__ or error))}).", retry=True)
    what = f"No server answers at {settings.endpoint} ({_short(str(cause)) or type(cause).__name__})."
    return Fault(what, mend=UserError(what, "Start the server, or correct --base-url."))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def retry_after(headers: Any) -> float | None:
    """Read Retry-After in seconds, from its number or its date; None where there is none that can be read."""
    value = headers.get("retry-after")
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        # the server's own clock, so that a wrong clock here does not matter
        asked, now = parsedate_to_datetime(value), parsedate_to_datetime(headers["date"])
        return max(0.0, (asked - now).total_seconds())
    except (ValueError, TypeError, KeyError):
        return None


def _said(error: Any) -> str:
    body = error.body
    if isinstance(body, dict):
        inner = body.get("error", body)
        said = inner.get("message") if isinstance(inner, dict) else inner
        return _short(str(said or json.dumps(body)))
    return _short(str(error.message))


def _short(text: str, limit: int = 300) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[:limit]}…"
