"""The web pages over runs and memory: what they show, whom they answer, and what they let no source do."""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvicorn
from starlette.testclient import TestClient

from graphs.run.steering import steer
from kernelwright.ui.app import COOKIE, build_app
from kernelwright.ui.charts import gain_chart, raw_chart
from kernelwright.ui.highlighting import LONGEST, diff_html, python_html
from kernelwright.ui.tree import MOST, branches
from knowledge.store import KnowledgeBase
from knowledge.vectors.embedding import open_embedder
from tests.support.loop import small_services
from tests.support.recorded import restored
from tools.listening import listen

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
HEADLESS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-sync",
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a finished run in which a model played roles, one that has just begun, a damaged one, and a memory."""
    folder = tmp_path_factory.mktemp("home")
    (folder / "runs").mkdir()
    restored("scripted", folder / "runs" / "scripted")
    small_services(folder / "runs" / "begun-1").store.close()
    (folder / "runs" / "damaged").mkdir()
    (folder / "runs" / "damaged" / "run.db").write_bytes(b"no database at all, but long enough to look like one" * 40)
    base = KnowledgeBase(folder / "knowledge", open_embedder("hashing"))
    base.all()
    base.close()
    return folder


@pytest.fixture(scope="module")
def pages(home: Path) -> TestClient:
    """The pages, as a browser asks for them."""
    return TestClient(build_app(home, ["testserver"]))


def _candidates(pages: TestClient) -> list[dict[str, object]]:
    found = pages.get("/api/runs/scripted").json()["candidates"]
    assert isinstance(found, list)
    return found


def test_runs_are_listed_and_a_damaged_one_says_why(pages: TestClient) -> None:
    """Every run has a line and a link; one that cannot be read hides no other."""
    text = pages.get("/").text
    assert 'href="/runs/scripted"' in text
    assert 'href="/runs/begun-1"' in text
    assert "damaged" in text
    assert 'class="warning"' in text
    assert 'href="/runs/begun-1"' not in pages.get("/?q=script").text


def test_a_run_shows_its_candidates_below_their_parents(pages: TestClient) -> None:
    """The tree has a link for each candidate, a plot of gains, and what was delivered."""
    text = pages.get("/runs/scripted").text
    assert all(f"/candidates/{one['id']}" in text for one in _candidates(pages))
    assert "<svg" in text
    assert "what was delivered" in text
    assert "data-live" not in text


def test_a_run_under_way_is_followed(pages: TestClient) -> None:
    """Only a run that has not ended is fetched again by the page."""
    assert "data-live" in pages.get("/runs/begun-1").text


def test_a_run_shows_what_a_person_asked_of_it(tmp_path: Path) -> None:
    """Each hint stands on the page as text, with when it counts, and whether the run is paused."""
    store = small_services(tmp_path / "runs" / "begun-1").store
    steer(store, "hint", "<b>Mind</b> the tail.")
    steer(store, "pause")
    text = TestClient(build_app(tmp_path, ["testserver"])).get("/runs/begun-1").text
    assert "&lt;b&gt;Mind&lt;/b&gt; the tail." in text
    assert "not yet in force" in text
    assert "unfinished, paused" in text


def test_a_candidate_shows_plan_source_difference_and_prompts(pages: TestClient) -> None:
    """A candidate's page has its action, its coloured source and difference, and what the model was asked."""
    shown = [pages.get(f"/runs/scripted/candidates/{one['id']}").text for one in _candidates(pages)]
    assert all('class="code"' in text and "Difference from its parent" in text for text in shown)
    assert any("<h3>answer</h3>" in text for text in shown)


def test_two_candidates_stand_side_by_side(pages: TestClient) -> None:
    """A comparison has both results and the difference of the sources."""
    first, second = _candidates(pages)[:2]
    text = pages.get(f"/compare?left=scripted:{first['id']}&right=scripted:{second['id']}").text
    assert text.count("<section>") == 2
    assert "Difference of the sources" in text


def test_strategies_are_listed_and_shown_whole(pages: TestClient) -> None:
    """The memory's page links each strategy; its page has the lesson and its history."""
    text = pages.get("/memory").text
    link = text.partition('href="/memory/')[2].partition('"')[0]
    shown = pages.get(f"/memory/{link}").text
    assert "How it changed" in shown
    assert "Never tried here" in shown


def test_steps_have_their_times(pages: TestClient) -> None:
    """Every execution of a node is listed."""
    assert "measure" in pages.get("/runs/scripted/steps").text


@pytest.mark.parametrize("path", ["/runs/nothing", "/runs/scripted/candidates/zzz", "/memory/zzz", "/compare?left=nothing", "/nowhere"])
def test_what_is_not_there_is_one_line(pages: TestClient, path: str) -> None:
    """A wrong address is a page that says so, with status 404."""
    found = pages.get(path)
    assert found.status_code == 404
    assert 'class="warning"' in found.text


def test_other_hosts_names_are_refused(home: Path) -> None:
    """A page of another site that resolves to this machine reads nothing."""
    assert TestClient(build_app(home, ["localhost"]), base_url="http://evil.example").get("/").status_code == 400


def test_a_token_is_asked_for_and_kept(home: Path) -> None:
    """With a token, the address with it opens the pages and sets a cookie; all others are refused."""
    browser = TestClient(build_app(home, ["testserver"], "secret"))
    assert browser.get("/").status_code == 401
    assert browser.get("/?token=guess").status_code == 401
    assert browser.get("/api/runs").status_code == 401
    assert browser.get("/?token=secret").status_code == 200
    assert browser.cookies[COOKIE] == "secret"
    assert browser.get("/memory").status_code == 200


def test_a_source_cannot_act_in_the_page(pages: TestClient) -> None:
    """Markup in sources and differences is text, and no script but the pages' own may run."""
    hostile = "</pre><script>alert(1)</script>"
    for text in (python_html(hostile), diff_html(f"+{hostile}"), python_html(hostile + "#" * LONGEST)):
        assert "<script>" not in text
    assert "script-src" not in (policy := pages.get("/").headers["content-security-policy"])
    assert policy.startswith("default-src 'self'")


def test_plots_without_figures_are_left_out() -> None:
    """Nothing is drawn where nothing has a time."""
    assert gain_chart([{"speedup": None}]) == ""
    assert raw_chart(None) == ""


def test_a_large_run_shows_its_best_and_their_parents() -> None:
    """Of thousands of candidates the best chain is drawn whole, in the order of a tree."""
    lines = [{"id": str(n), "parent": "root" if n == 0 else str(n - 1), "verdict": "PASS", "speedup": float(n)} for n in range(3 * MOST)]
    drawn = branches({"candidates": lines, "delivered": str(3 * MOST - 1)})
    assert len(drawn) == MOST
    assert drawn[-1].mark == "best"
    assert [one.depth for one in drawn] == list(range(MOST))


@pytest.fixture(scope="module")
def address(home: Path) -> Iterator[str]:
    """Where the pages are served."""
    with listen("127.0.0.1", 0) as listening:
        server = uvicorn.Server(uvicorn.Config(build_app(home, ["127.0.0.1"]), log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_a_browser_draws_a_run(address: str, tmp_path: Path) -> None:
    """In Chromium the page of a run has its tree and plots, with the pages' own style."""
    command = [str(CHROMIUM), *HEADLESS, f"--user-data-dir={tmp_path}", "--dump-dom", f"{address}/runs/scripted"]
    drawn = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert "Search tree" in drawn
    assert "<circle" in drawn
