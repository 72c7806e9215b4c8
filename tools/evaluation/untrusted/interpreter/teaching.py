"""All that Triton's interpreter is taught in a runner without a GPU, at once."""

from __future__ import annotations

from tools.evaluation.untrusted.interpreter import builder, combining, libdevice, patching, scan_order


def install() -> None:
    """Teach it for the rest of this process."""
    for part in (patching, builder, scan_order, combining, libdevice):
        part.install()
