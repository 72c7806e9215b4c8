"""The look at a model's server before a run: is it there, does it take the key, does it have the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents.models.clients import make_client
from agents.models.faults import REFUSED_KEY, classify, unknown_model
from agents.models.settings import Key, ModelSettings, find_key
from tools.errors import UserError

if TYPE_CHECKING:
    from langchain_openai.chat_models.base import BaseChatOpenAI

SHARED_MODELS = "models.db"
"""Name of the file in the home folder that has what runs share about models."""
CHECK_S = 15.0
"""For the list of models, which costs nothing to make."""


async def check_model(settings: ModelSettings) -> str:
    """Ask the server which models it has.

    Raises UserError for what the user must mend; returns a sentence about what could not be found out, or an empty one.
    """
    from openai import DefaultAsyncHttpxClient

    key = find_key(settings)
    async with DefaultAsyncHttpxClient(timeout=min(CHECK_S, settings.timeout_s)) as http:
        client = make_client(settings, key, http, responses=False)
        try:
            # one page only: a server that counts on for ever is not listened to for ever
            page = await client.root_async_client.models.list(timeout=min(CHECK_S, settings.timeout_s))
        except Exception as error:
            return await _trouble(error, settings, key, client)
        names = {str(model.id) for model in page.data or ()}
    # Azure lists what could be deployed, not what is
    if names and settings.api != "azure" and not {settings.name, f"{settings.name}:latest"} & names:
        raise unknown_model(settings, names)
    return ""


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
