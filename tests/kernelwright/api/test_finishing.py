"""Work from a script and from a notebook."""

from __future__ import annotations

import asyncio
import threading

import pytest

from kernelwright.api.finishing import finish


async def _name() -> str:
    await asyncio.sleep(0)
    return threading.current_thread().name


async def _fail() -> None:
    await asyncio.sleep(0)
    raise ValueError("no")


def test_a_script_waits_in_its_own_thread() -> None:
    """Without a loop nothing is started for one."""
    assert finish(_name()) == threading.current_thread().name


def test_a_notebook_has_a_loop_already() -> None:
    """Where a loop is running the work has one of its own, in another thread."""

    async def cell() -> str:
        return finish(_name())

    assert asyncio.run(cell()) == "kernelwright"


def test_what_is_raised_arrives() -> None:
    """An error of the work is the caller's, with and without a loop."""

    async def cell() -> None:
        finish(_fail())

    for attempt in (lambda: finish(_fail()), lambda: asyncio.run(cell())):
        with pytest.raises(ValueError, match="no"):
            attempt()
