"""All that Triton's interpreter is taught in a runner without a GPU, at once."""

from __future__ import annotations

from functools import cache

from tools.evaluation.untrusted.interpreter import builder, combining, graphs, libdevice, patching, scan_order, shortcuts


@cache
def install() -> None:
    """Teach it for the rest of this process, once."""
    for part in (shortcuts, patching, builder, scan_order, combining, libdevice, graphs):
        part.install()
