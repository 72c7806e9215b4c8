"""The look at a model's server before a run: is it there, does it take the key, does it have the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from agents.models.bounded import bounded
from agents.models.clients import make_client
from agents.models.faults import REFUSED_KEY, classify, unknown_model
from agents.models.settings import Key, ModelSettings, find_key
from tools.errors import UserError

if TYPE_CHECKING:
    from langchain_openai.chat_models.base import BaseChatOpenAI

SHARED_MODELS = "models.db"
"""Name of the file in the home folder that has what runs share about models."""
CONTEXT_NAMES = ("n_ctx", "n_ctx_train", "max_model_len", "context_length", "loaded_context_length", "max_context_length", "context_window")
"""Of llama.cpp, vLLM and SGLang, OpenRouter, LM Studio, Mistral, Groq: their lists of models say so, the hosted service's does not."""
MAX_LIST_BYTES = 16 << 20
PAGES = ("/chat/completions", "/responses", "/completions", "/models")
"""What is often copied with a server's address."""
CHECK_S = 15.0
"""For the list of models, which costs nothing to make."""


class Looked(NamedTuple):
    """What the look at a server found."""

    note: str = ""
    """What could not be found out, one sentence; empty where all could."""
    context: int = 0
    """Tokens that the model takes, prompt and reply together, as the server says; 0 where it does not."""


async def check_model(settings: ModelSettings) -> Looked:
    """Ask the server which models it has, and how much text this one takes; raises UserError for what the user must mend."""
    from openai import DefaultAsyncHttpxClient

    key = find_key(settings)
    if not settings.endpoint.startswith(("http://", "https://")):
        raise UserError(f"The server {settings.endpoint!r} is no address.", f"Give --base-url http://{settings.endpoint}, or https://.")
    async with DefaultAsyncHttpxClient(timeout=min(CHECK_S, settings.timeout_s), **bounded(MAX_LIST_BYTES)) as http:
        client = make_client(settings, key, http, responses=False)
        try:
            # one page only: a server that counts on for ever is not listened to for ever
            page = await client.root_async_client.models.list(timeout=min(CHECK_S, settings.timeout_s))
        except Exception as error:
            note = await _trouble(error, settings, key, client)
            if (other := await _beside(settings, key, http)) is not None:
                raise UserError(
                    f"No model server answers at {settings.endpoint}; one does at {other}.", f"Give --base-url {other}."
                ) from error
            return Looked(note)
        models = {str(model.id): model.model_extra or {} for model in page.data or ()}
    found = next((models[name] for name in (settings.name, f"{settings.name}:latest") if name in models), None)
    # Azure lists what could be deployed, not what is
    if models and settings.api != "azure" and found is None:
        raise unknown_model(settings, models)
    return Looked(context=stated_context(found or {}))


def stated_context(fields: Mapping[str, Any]) -> int:
    """Read from a model's entry how many tokens it takes: the least of what is stated; 0 where nothing is."""
    meta = fields.get("meta")
    places = (fields, meta if isinstance(meta, dict) else {})
    stated = [place[name] for place in places for name in CONTEXT_NAMES if name in place]
    return min((int(value) for value in stated if isinstance(value, int | float) and value >= 1), default=0)


async def _beside(settings: ModelSettings, key: Key, http: Any) -> str | None:
    """Look whether the list of models is where the address should end: at `/v1`, or before the page that questions go to."""
    import openai

    given = settings.endpoint.rstrip("/")
    wanted = next((given.removesuffix(page) for page in PAGES if given.endswith(page)), f"{given}/v1")
    if settings.api == "azure" or given.endswith("/v1"):
        return None
    client = make_client(settings.model_copy(update={"base_url": wanted}), key, http, responses=False)
    try:
        page = await client.root_async_client.models.list(timeout=min(CHECK_S, settings.timeout_s))
    except (openai.OpenAIError, ValueError):
        return None
    return wanted if getattr(page, "data", None) else None


async def _trouble(error: Exception, settings: ModelSettings, key: Key, client: BaseChatOpenAI) -> str:
    """Raise what stands in the way of every call; many servers lack the list of models, and work."""
    import openai

    fault = await classify(error, settings, key.source, client, answered=False)
    if isinstance(error, openai.APIConnectionError):
        raise fault.mend or UserError(
            f"The server at {settings.endpoint} does not answer: {fault.text}", "Start the server, or correct --base-url."
        ) from error
    if isinstance(error, openai.APIStatusError) and error.status_code in REFUSED_KEY and fault.mend is not None:
        raise fault.mend from error
    return f"{settings.endpoint} does not say whether it has the model {settings.name!r}: that shows at the first call."
