"""CUDA graphs where there is no device: what is captured and replayed is told to whoever follows the host code."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Protocol


class Listener(Protocol):
    """Who is told of graphs."""

    def begin_capture(self) -> None:
        """Hear that what follows is captured and does not happen."""
        ...

    def end_capture(self, graph: object) -> None:
        """Hear that `graph` holds what was done since."""
        ...

    def replay(self, graph: object) -> None:
        """Hear that what `graph` holds happens now."""
        ...


def install(listener: Listener) -> None:
    """Have torch's graphs of this process tell `listener`."""
    import torch

    class Graph:
        """A graph of launches that nobody makes."""

        def __init__(self, *_: object, **__: object) -> None:
            """Take whatever a graph is made with."""

        def capture_begin(self, *_: object, **__: object) -> None:
            """Begin."""
            listener.begin_capture()

        def capture_end(self) -> None:
            """End."""
            listener.end_capture(self)

        def replay(self) -> None:
            """Do what was captured."""
            listener.replay(self)

        def instantiate(self) -> None:
            """Be ready, as it is."""

        def reset(self) -> None:
            """Forget nothing: a graph that was reset is not replayed."""

        def pool(self) -> tuple[int, int]:
            """Name the memory that it uses."""
            return (0, 1)

    @contextlib.contextmanager
    def graph(cuda_graph: Any, *_: object, **__: object) -> Iterator[None]:
        cuda_graph.capture_begin()
        try:
            yield
        finally:
            cuda_graph.capture_end()

    replies: dict[str, Any] = {
        "CUDAGraph": Graph,
        "graph": graph,
        "graph_pool_handle": lambda: (0, 1),
        "is_current_stream_capturing": lambda: False,
    }
    for name, reply in replies.items():
        setattr(torch.cuda, name, reply)
