"""A bound on what a server may send: a reply that goes on and on is given up, and nothing of it is kept."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any


class ReplyTooLongError(Exception):
    """The server sent more than a reply may have."""


def bounded(limit: int) -> dict[str, Any]:
    """Settings of the OpenAI client's HTTP client by which responses have at most `limit` bytes, unpacked."""

    async def bound(response: Any) -> None:
        # whichever httpx the OpenAI client has underneath, this is what its `aread` goes through
        read = response.aiter_bytes

        async def parts(chunk_size: int | None = None) -> AsyncIterator[bytes]:
            seen = 0
            async for part in read(chunk_size):
                seen += len(part)
                if seen > limit:
                    raise ReplyTooLongError(f"its reply is longer than {limit / 1e6:.1f} MB")
                yield part

        response.aiter_bytes = parts

    return {"event_hooks": {"response": [bound]}}
