"""A store that ends its run where a node is left, as a kill there does, so that a test can resume it in the same process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tools.tracing import RunStore


class Interrupted(Exception):  # noqa: N818 - it is the test's wish, not an error
    """The run ended here."""


class InterruptedStore(RunStore):
    """Raises once on leaving the `at`-th execution of `node`."""

    node = "recall"
    at = 1

    @contextmanager
    def span(self, node: str, subject: str, given: str) -> Iterator[list[str]]:
        """Record the span, and end the run where told."""
        with super().span(node, subject, given) as output:
            yield output
            if node == self.node:
                self.at -= 1
                if self.at == 0:
                    raise Interrupted
