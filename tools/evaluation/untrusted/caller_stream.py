"""The stream and device that were current before the candidate came: its caller works there, and finds its outputs there."""

from __future__ import annotations

from typing import Any


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
