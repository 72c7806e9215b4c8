"""What tests of the pages share: one home, one server, and one browser."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import uvicorn
from filelock import FileLock
from starlette.testclient import TestClient

from kernelwright.ui.app import build_app
from tests.support.shown import MEASURED, fill
from tools.listening import listen

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with something for every page; the measured run is being worked on."""
    folder = tmp_path_factory.mktemp("home")
    fill(folder)
    with FileLock(folder / "runs" / MEASURED / "lock"):
        yield folder


@pytest.fixture(scope="session")
def pages(home: Path) -> TestClient:
    """The pages, as a browser asks for them."""
    return TestClient(build_app(home, ["testserver"]))


@pytest.fixture(scope="session")
def address(home: Path) -> Iterator[str]:
    """Where the pages are served."""
    with listen("127.0.0.1", 0) as listening:
        server = uvicorn.Server(uvicorn.Config(build_app(home, ["127.0.0.1"]), log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window, for one file alone: its driver holds an event loop, beside which no test can run its own."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed here: what a browser does with the pages was not seen (apt-get install chromium)")
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed here: pip install playwright")
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=list(OPTIONS))
        yield found
        found.close()
