"""The stream and device that were current before the candidate came: its caller works there, and finds its outputs there."""

from __future__ import annotations

from typing import Any


def answer_when_done() -> None:
    """Have streams and events wait before they say whether they are done, as they may: nobody sees from it what stands before a call.

    Who polls one in a loop finds it done at once.
    """
    import torch

    def query(self: Any) -> bool:
        self.synchronize()
        return True

    for kind in (torch.cuda.Stream, torch.cuda.Event):
        kind.query = query  # type: ignore[method-assign]


class CallerStream:
    """What a call must leave current."""

    def __init__(self) -> None:
        """Remember what is current now, and how to ask: the candidate may replace the functions."""
        import torch

        self._current_stream, self._current_device = torch.cuda.current_stream, torch.cuda.current_device
        self._device = self._current_device()
        self.stream: Any = self._current_stream()

    def was_left(self) -> bool:
        """Whether another stream or device is current."""
        return bool(self._current_device() != self._device or self._current_stream() != self.stream)
