"""How many processes a device keeps."""

from __future__ import annotations

from tools.evaluation.processes.kept import LEAST, LEAST_SPARES, MOST, MOST_SPARES, kept_processes, spare_processes


def test_a_large_device_keeps_the_processes_of_a_whole_bench() -> None:
    """More memory keeps more, between bounds; a device that says nothing keeps the least."""
    assert kept_processes(80 << 30) == MOST > kept_processes(24 << 30) > LEAST
    assert kept_processes(8 << 30) == kept_processes(None) == LEAST
    assert spare_processes(80 << 30) == MOST_SPARES
    assert spare_processes(24 << 30) == spare_processes(None) == LEAST_SPARES
