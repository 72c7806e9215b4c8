"""Spares the processor: no search for garbage among imported modules and collected tests, which stay; what shares processes together."""

from __future__ import annotations

import atexit
import gc
import os
from collections.abc import Callable, Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import breadth

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

SHARING = (
    ("tests/tools/codegen/templates/",),
    ("tests/tools/codegen/",),
    ("tests/graphs/",),
    ("tests/tools/evaluation/",),
    ("tests/tools/evidence/", "tests/kernelwright/test_verify.py"),
)
"""Folders and files that start the same processes, trace the same samples or need one bundle: a worker runs a row, and does that once."""


def pytest_configure(config: pytest.Config) -> None:
    """Have clients read no certificates, 40 ms each for all of the machine's: this folder has none, and no test speaks TLS."""
    os.environ["SSL_CERT_DIR"] = str(Path(__file__).parent)
    # one that the user's environment names would come first
    os.environ.pop("SSL_CERT_FILE", None)
    if hasattr(config, "workerinput"):
        # a worker has told all by then: to take apart what it has imported takes it two seconds more
        atexit.register(os._exit, 0)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without looking for garbage, and never look at what is there by then."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        gc.set_threshold(*breadth.GARBAGE)


@pytest.fixture
def collect() -> Callable[[], int]:
    """Return what looks for garbage among all that is made from now on: a look at all imported modules takes two seconds."""
    gc.freeze()
    return gc.collect


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Have garbage that warns found while the test's own filter of warnings holds, not some tests later."""
    try:
        return (yield)
    finally:
        if item.get_closest_marker("filterwarnings"):
            gc.collect(1)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with folders that one worker runs, then with files that hold slow tests: who came to one of them last would end alone."""
    left = [] if breadth.ALL else [item for item in items if item.get_closest_marker("thorough")]
    config.hook.pytest_deselected(items=left)
    items[:] = [item for item in items if item not in left]
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (not item.nodeid.startswith(sum(SHARING, ())), item.path not in slow))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    """Deal out files, and some of them together as if they were one."""
    from xdist.scheduler import LoadFileScheduling

    class ByFileOrFolder(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return next((row[0] for row in SHARING if nodeid.startswith(row)), super()._split_scope(nodeid))

    return ByFileOrFolder(config, log)
