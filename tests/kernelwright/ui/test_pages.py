"""The web pages over runs and memory: what they show, whom they answer, and what they let no source do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from graphs.run.steering import steer
from kernelwright.ui.app import build_app
from kernelwright.ui.charts import gain_chart, raw_chart
from kernelwright.ui.guard import COOKIE
from kernelwright.ui.highlighting import LONGEST, diff_html, python_html
from kernelwright.ui.tree import MOST, branches
from tests.support.loop import small_services
from tests.support.shown import BENCH, MEASURED, candidate, judge, measured, profile
from tools.profiling.ncu import NOT_INSTALLED, Counters
from tools.records import ROOT


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
    assert '<span class="state paused">' in text
    assert '<span class="state stopped">' in text


def test_a_candidate_shows_plan_source_difference_and_prompts(pages: TestClient) -> None:
    """A candidate's page has its action, its coloured source and difference, and what the model was asked."""
    shown = [pages.get(f"/runs/scripted/candidates/{one['id']}").text for one in _candidates(pages)]
    assert all('class="code"' in text and 'id="difference"' in text for text in shown)
    for text in shown[1:]:
        assert {role for role in ("planner", "coder", "reviewer") if f"<summary>{role} asked" in text} == {"planner", "coder", "reviewer"}
        assert text.count("<summary>profiler asked") == 1
    assert "<summary>repairer asked" in shown[1]


def test_a_timed_candidate_shows_where_its_time_goes(pages: TestClient) -> None:
    """Every raw time, the roofline with the reference and the parent, stall reasons, machine code and the money of its call."""
    last = pages.get(f"/api/runs/{MEASURED}").json()["candidates"][-1]["id"]
    text = pages.get(f"/runs/{MEASURED}/candidates/{last}").text
    for words in (
        "Every time of the session",
        "Roofline of NVIDIA H200",
        "<title>parent: ",
        "global or local memory",
        "Machine code",
        "$0.0200",
    ):
        assert words in text
    assert "Pin: work on it next" in text


def test_a_confirmed_candidate_is_as_fast_as_when_it_was_confirmed(pages: TestClient) -> None:
    """Gain and time at the head of its page are those of the confirmation."""
    last = pages.get(f"/api/runs/{MEASURED}").json()["candidates"][-1]["id"]
    text = pages.get(f"/runs/{MEASURED}/candidates/{last}").text
    assert "5.21x<small>over the best baseline, confirmed" in text
    assert "48.0 µs<small>" in text


def test_a_profile_without_counters_says_why(tmp_path: Path) -> None:
    """Where Nsight Compute is not installed the page says so in the place of stall reasons, and once."""
    store = measured(tmp_path / "runs" / "timed-1")
    name = candidate(store, ROOT, 256, "It is next.")
    judge(store, name, 40.0)
    figures = tuple(one for one in profile(name, 40.0).figures if not one.name.startswith("stall_"))
    store.put("profile", name, profile(name, 40.0).model_copy(update={"figures": figures, "notes": (NOT_INSTALLED,)}))
    store.put("counters", "key", Counters(note=NOT_INSTALLED), subject=name)
    text = TestClient(build_app(tmp_path, ["testserver"])).get(f"/runs/timed-1/candidates/{name}").text
    assert text.count(NOT_INSTALLED) == 1
    assert "Why warps wait is not known here: Nsight Compute" in text


def test_the_pages_need_no_torch() -> None:
    """They start in a second, and on a machine that could run no kernel."""
    program = "import sys, kernelwright.ui.app; print(*{'torch', 'triton', 'chromadb'}.intersection(sys.modules))"
    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == ""


def test_a_candidate_is_compared_with_any_other(pages: TestClient) -> None:
    """The others of its run are offered, and the one that was chosen stands at the head of the difference."""
    first, wrong, last = (one["id"] for one in pages.get(f"/api/runs/{MEASURED}").json()["candidates"])
    text = pages.get(f"/runs/{MEASURED}/candidates/{last}?against={wrong}").text
    assert f'<option value="{first}">' in text
    assert f'<option value="{wrong}" selected>' in text
    assert f"--- {MEASURED}:{wrong}" in text


def test_gains_are_drawn_over_candidates_time_and_money(pages: TestClient) -> None:
    """Money has a plot where any was spent, and only there."""
    measured, scripted = (pages.get(f"/runs/{name}").text for name in (MEASURED, "scripted"))
    assert all(f"Gain over {over}" in measured for over in ("candidates", "time", "money"))
    assert "Gain over money" not in scripted
    assert "Gain over time" in scripted


def test_who_has_the_page_as_it_stands_is_told_so(pages: TestClient) -> None:
    """A page that is followed is not made again before the run has written something."""
    mark = pages.get(f"/runs/{MEASURED}").headers["etag"]
    assert pages.get(f"/runs/{MEASURED}", headers={"if-none-match": mark}).status_code == 304


def test_two_candidates_stand_side_by_side(pages: TestClient) -> None:
    """A comparison has both results and the difference of the sources."""
    first, second = _candidates(pages)[:2]
    text = pages.get(f"/compare?left=scripted:{first['id']}&right=scripted:{second['id']}").text
    assert text.count('<th scope="col"><a ') == 2
    assert "Difference of the sources" in text


def test_two_runs_stand_side_by_side(pages: TestClient) -> None:
    """A measured and an estimated run are not said to be one faster than the other; settings that differ are told."""
    text = pages.get(f"/compare?left=scripted&right={MEASURED}").text
    assert "Their times do not compare" in text
    assert "settings differ" in text
    assert f'<option value="{MEASURED}:' in text


def test_a_bench_shows_arms_and_problems(pages: TestClient) -> None:
    """Its table has every result with its run, which lies in the bench's own home, and what is under way."""
    name = pages.get("/benches").text.partition('href="/benches/')[2].partition('"')[0]
    text = pages.get(f"/benches/{name}").text
    assert name.startswith(BENCH)
    assert "level1/1_relu" in text
    assert "Speed-up per problem" in text
    assert f'href="/runs/{name}~third-1"' in text
    assert pages.get(f"/runs/{name}~relu-1").status_code == 200


def test_a_model_shows_the_share_of_each_operator(pages: TestClient) -> None:
    """Each operator has its share of the time, what came of it, and its run."""
    name = pages.get("/models").text.partition('href="/models/')[2].partition('"')[0]
    text = pages.get(f"/models/{name}").text
    assert "Share of the model&#39;s time" in text
    assert "30.0%" in text
    assert "It is not faster." in text
    assert 'href="/runs/scripted"' in text
    assert "1.25x" in text


def test_strategies_are_listed_and_shown_whole(pages: TestClient) -> None:
    """The memory's page links each strategy; its page has the lesson and its history."""
    text = pages.get("/memory").text
    link = text.partition('href="/memory/')[2].partition('"')[0]
    shown = pages.get(f"/memory/{link}").text
    assert "What changed it" in shown
    assert "Never tried here" in shown


def test_steps_have_their_times(pages: TestClient) -> None:
    """Every execution of a node is listed."""
    assert "measure" in pages.get("/runs/scripted/steps").text


@pytest.mark.parametrize(
    "path",
    [
        "/runs/nothing",
        "/runs/scripted/candidates/zzz",
        "/memory/zzz",
        "/compare?left=nothing",
        "/models/zzz",
        "/benches/zzz",
        "/runs/zzz~run",
        "/nowhere",
    ],
)
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
    assert gain_chart([{"speedup": None, "number": 1}]) == ""
    assert raw_chart(None) == ""


def test_a_large_run_shows_its_best_and_their_parents() -> None:
    """Of thousands of candidates the best chain is drawn whole, in the order of a tree."""
    lines = [{"id": str(n), "parent": "root" if n == 0 else str(n - 1), "verdict": "PASS", "speedup": float(n)} for n in range(3 * MOST)]
    drawn = branches({"candidates": lines, "delivered": str(3 * MOST - 1)})
    assert len(drawn) == MOST
    assert drawn[-1].mark == "best"
    assert [one.depth for one in drawn] == list(range(MOST))
