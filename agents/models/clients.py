"""Making langchain-openai's client for a server: the hosted service, Azure, or whatever speaks its protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents.models.settings import Key, ModelSettings

if TYPE_CHECKING:
    from langchain_openai.chat_models.base import BaseChatOpenAI


def make_client(settings: ModelSettings, key: Key, http: Any, *, responses: bool) -> BaseChatOpenAI:
    """Make the client; its retries are off, as ours know what the run may spend."""
    from langchain_openai import AzureChatOpenAI, ChatOpenAI

    common: dict[str, Any] = {
        "model": settings.name,
        "api_key": key.secret,
        "timeout": settings.timeout_s,
        "max_retries": 0,
        "http_async_client": http,
        "use_responses_api": responses,
    }
    if settings.api != "azure":
        return ChatOpenAI(base_url=settings.endpoint, **common)
    return AzureChatOpenAI(azure_endpoint=settings.endpoint, azure_deployment=settings.name, api_version=settings.azure_version, **common)
