"""What is pressed on the pages, in Chromium, changes the run: hints reach the prompts, pins and vetoes what is planned and delivered."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agents import TeamSettings
from graphs.optimize.execute import execute
from graphs.run.records import Delivery
from graphs.run.settings import RunSettings
from graphs.search.protocol import SearchSettings
from tests.agents.models.playing import EVERY, model_settings, play
from tests.support.loop import small_services
from tests.support.scenarios import block_team
from tests.support.scripted_rules import Scenario
from tests.support.scripted_server import ScriptedServer
from tools.records import Budget, Evaluation, Plan, Verdict
from tools.tracing import RunStore

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LONG_S = 120
"""On a machine that others use too, what a role imports when it is first asked takes half a minute."""
Event = dict[str, Any]


class Held:
    """Holds a run up the first time that something has happened in it, until it is let go."""

    def __init__(self, when: Callable[[Event], bool]) -> None:
        """Wait for the first event of which `when` holds."""
        self._when = when
        self._there, self._go = threading.Event(), threading.Event()

    def listen(self, event: Event) -> None:
        """Stand still at that event."""
        if not self._there.is_set() and self._when(event):
            self._there.set()
            assert self._go.wait(LONG_S)

    def reached(self) -> None:
        """Return once the run stands still."""
        assert self._there.wait(LONG_S)

    def let_go(self) -> None:
        """Let it go on."""
        self._go.set()


@contextmanager
def working(held: Held, run: Coroutine[Any, Any, object]) -> Iterator[None]:
    """A run that works in a thread of its own, as it would in another process; it has ended when this has."""
    with ThreadPoolExecutor(1) as thread:
        ending = thread.submit(asyncio.run, run)
        try:
            held.reached()
            yield
        finally:
            held.let_go()
            ending.result(LONG_S)


async def blocks(folder: Path, listen: Callable[[Event], None]) -> None:
    """A run of the small landscape whose agents are not models, two plans a round."""
    settings = RunSettings(
        target="h200", memory=False, budget=Budget(evaluations=10), search_settings=SearchSettings(batch=2, width=2, patience=0)
    )
    await execute(small_services(folder, settings), listen)


def right(store: RunStore) -> list[str]:
    """The right candidates, the slowest first."""
    found = {one.candidate: one.speedup or 0.0 for one in store.all("evaluation", Evaluation).values() if one.verdict is Verdict.PASS}
    return sorted(found, key=lambda name: found[name])


def two_are_right(folder: Path) -> Held:
    """Stand still once there are two right candidates to choose from."""
    return Held(lambda event: event["event"] == "reviewed" and len(right(RunStore(folder))) > 1)


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    """A tab of its own."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    context.set_default_timeout(1000 * LONG_S)
    yield context.new_page()
    context.close()


def test_a_hint_given_on_the_page_is_in_a_later_prompt(tab: Page, address: str, home: Path) -> None:
    """Paused, given a hint and let go on from its page: the next planner's and coder's prompts have the hint, and the page shows both."""
    folder, words = home / "runs" / "hinted-1", "The rows are mostly zeros."
    held = Held(lambda event: event["event"] == "planned")
    with ScriptedServer(Scenario(rules=block_team())) as server:
        team = TeamSettings(model=model_settings(server), team="full", roles=EVERY)
        with working(held, play(folder, team, held.listen)):
            before = server.count("planner")
            tab.goto(f"{address}/runs/hinted-1")
            tab.get_by_role("button", name="Pause").press("Enter")
            tab.get_by_role("button", name="Go on").wait_for()
            held.let_go()
            tab.locator("#said .state.paused").wait_for()
            tab.get_by_label("Hint").fill(words)
            tab.get_by_role("button", name="Give").press("Enter")
            tab.get_by_text("not yet in force").wait_for()
            tab.get_by_role("button", name="Go on").press("Enter")
            tab.get_by_text("in force: round 2").wait_for()
        asked = {role: [str(one.body) for one in server.requests if one.role == role] for role in ("planner", "coder")}
    assert not any(words in text for text in asked["planner"][:before])
    assert words in asked["planner"][before]
    assert words not in asked["coder"][0]
    assert words in asked["coder"][1]
    store = RunStore(folder)
    later = [one.parent for one in store.all("plan", Plan).values()]
    assert len(later) > 1
    tab.goto(f"{address}/runs/hinted-1/candidates/{right(store)[-1]}")
    assert words in (tab.text_content("#calls ~ details") or "")


def test_a_pin_pressed_on_a_candidates_page_is_what_the_next_round_works_on(tab: Page, address: str, home: Path) -> None:
    """The slowest right candidate is pinned from its page: the next plans are on it, and the tree shows what came of it below it."""
    folder = home / "runs" / "pinned-1"
    held = two_are_right(folder)
    with working(held, blocks(folder, held.listen)):
        before = set(RunStore(folder).all("plan", Plan))
        slow = right(RunStore(folder))[0]
        tab.goto(f"{address}/runs/pinned-1/candidates/{slow}")
        tab.get_by_role("button", name="Pin: work on it next").press("Enter")
        tab.locator("#asked li", has_text=slow).wait_for()
        held.let_go()
        tab.get_by_text("in force: round").wait_for()
    store = RunStore(folder)
    later = [plan.parent for name, plan in store.all("plan", Plan).items() if name not in before]
    assert later[:2] == [slow, slow]
    tab.goto(f"{address}/runs/pinned-1/candidates/{next(one for one in right(store) if _parent(store, one) == slow)}")
    assert tab.get_by_role("navigation", name="where").get_by_role("link", name=slow[:6]).count() == 1


def test_a_veto_pressed_on_a_candidates_page_keeps_the_run_off_it(tab: Page, address: str, home: Path) -> None:
    """The best candidate is vetoed from its page: nothing is planned on it any more, another is delivered, and the page says so."""
    folder = home / "runs" / "vetoed-1"
    held = two_are_right(folder)
    with working(held, blocks(folder, held.listen)):
        before = set(RunStore(folder).all("plan", Plan))
        best = right(RunStore(folder))[-1]
        tab.goto(f"{address}/runs/vetoed-1/candidates/{best}")
        tab.get_by_role("button", name="Veto: keep off it").press("Enter")
        tab.locator("#asked li", has_text=best).wait_for()
        held.let_go()
        tab.locator("#said .state.ended").wait_for()
    store = RunStore(folder)
    assert best not in {plan.parent for name, plan in store.all("plan", Plan).items() if name not in before}
    (delivery,) = store.all("delivery", Delivery).values()
    assert delivery.candidate not in (best, "root")
    assert "in force: round" in tab.inner_text("#asked")
    assert tab.locator(f"tr:has(a[href$='{delivery.candidate}'])", has_text="delivered").count() == 1


def _parent(store: RunStore, name: str) -> str:
    found = store.candidate(name)
    assert found is not None
    return found.parent
