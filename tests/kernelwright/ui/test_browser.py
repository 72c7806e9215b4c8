"""The pages as Chromium draws them: on recorded runs and on one that is being worked on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from filelock import FileLock

from tests.support.shown import MEASURED, candidate, judge, measured
from tools.records import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PAGES = {
    "runs": "/",
    "a run": "/runs/scripted",
    "a running run": f"/runs/{MEASURED}",
    "steps": "/runs/scripted/steps",
    "a candidate": f"/runs/{MEASURED}/candidates/LAST",
    "two runs": f"/compare?left=scripted&right={MEASURED}",
    "models": "/models",
    "a model": "FIRST /models/",
    "benches": "/benches",
    "a bench": "FIRST /benches/",
    "memory": "/memory",
    "a strategy": "FIRST /memory/",
}
CHECKS = (Path(__file__).parent / "checks.js").read_text()
FINE = {
    "wider": 0,
    "headings": 1,
    "mains": 1,
    "nameless": 0,
    "unlabelled": 0,
    "pictures": 0,
    "faint": [],
    "pale": [],
    "unseen": [],
    "twice": [],
}


@pytest.fixture(scope="module", params=[("desktop", 1280, "light"), ("phone", 390, "dark")], ids=lambda one: one[0])
def page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A tab that fails a test with any error of a script or any file that is not there."""
    _, wide, scheme = request.param
    context = browser.new_context(viewport={"width": wide, "height": 800}, color_scheme=scheme)
    yield context.new_page()
    context.close()


def _opened(page: Page, address: str, path: str) -> list[str]:
    """Open a page; return what its browser complained of."""
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    if path.startswith("FIRST"):
        listed = path.split()[1]
        page.goto(f"{address}{listed.rstrip('/')}")
        path = page.get_attribute(f"main a[href^='{listed}']", "href") or ""
    if path.endswith("LAST"):
        page.goto(f"{address}/runs/{MEASURED}")
        path = page.get_attribute("table.tree tr:last-child a", "href") or ""
    page.goto(f"{address}{path}")
    return said


def _broken_rules(page: Page) -> list[tuple[str, str]]:
    """What axe finds wrong: the rule, and where it is broken."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python")
    page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
    found = axe.Axe().run(page).response["violations"]
    return [(one["id"], node["html"][:200]) for one in found for node in one["nodes"]]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole(page: Page, address: str, name: str) -> None:
    """No error, nothing wider than the screen, one heading, every table, field and picture named, and nothing too faint to see."""
    assert _opened(page, address, PAGES[name]) == []
    assert page.evaluate(CHECKS) == FINE


@pytest.mark.parametrize("name", [*PAGES, "a refusal"])
def test_a_page_can_be_read_by_a_screen_reader(page: Page, address: str, name: str) -> None:
    """All of axe's rules hold with everything unfolded: landmarks, headings in order, names of controls, tables, what can be scrolled."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python")
    _opened(page, address, {**PAGES, "a refusal": "/runs/nothing"}[name])
    page.evaluate("document.querySelectorAll('details').forEach((one) => one.open = true)")
    found = axe.Axe().run(page).response["violations"]
    assert [(one["id"], node["html"][:200]) for one in found for node in one["nodes"]] == []


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    """A tab of its own."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    yield context.new_page()
    context.close()


def test_a_running_run_is_followed_and_what_was_unfolded_stays(tab: Page, address: str, home: Path) -> None:
    """A candidate that is written while the page is open appears on it, and the link that has the focus keeps it; so does the end."""
    store = measured(home / "runs" / "followed-1")
    with FileLock(home / "runs" / "followed-1" / "lock"):
        tab.goto(f"{address}/runs/followed-1")
        tab.locator("table.tree a").first.focus()
        focused = tab.evaluate("document.activeElement.getAttribute('href')")
        judge(store, candidate(store, ROOT, 512, "More."), 40.0)
        tab.locator("table.tree a").nth(3).wait_for()
    assert "6.25x" in tab.inner_text("#head")
    assert tab.evaluate("document.activeElement.getAttribute('href')") == focused
    tab.wait_for_selector("#said .state.stopped")
    store.close()


def test_a_run_is_steered_by_keyboard(tab: Page, address: str) -> None:
    """The first key leads to the content; a hint is typed and sent without a mouse, and stands on the page."""
    tab.goto(f"{address}/runs/begun-1")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "to the content"
    tab.get_by_label("Hint").focus()
    tab.keyboard.type("Mind the tail.")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#asked li")
    assert "hint Mind the tail. not yet in force" in tab.inner_text("#asked")


def test_the_picture_of_the_tree_leads_to_candidates(tab: Page, address: str) -> None:
    """Each dot is a link with words for who does not see it."""
    tab.goto(f"{address}/runs/scripted")
    dots = tab.locator("svg.drawn a")
    assert "delivered" in "".join(dots.nth(place).get_attribute("aria-label") or "" for place in range(dots.count()))
    dots.first.locator("circle").click()
    assert "/candidates/" in tab.url


def test_a_server_that_is_gone_is_said(tab: Page, address: str) -> None:
    """The page says that it may be old once its server does not answer."""
    tab.goto(f"{address}/runs/begun-1")
    tab.route("**/*", lambda route: route.abort())
    tab.wait_for_selector("#notice:visible")
