"""A run as one HTML file: whole, escaped, and in need of nothing else."""

from __future__ import annotations

import asyncio
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from agents.coder.protocol import CodingTask, Draft, Refusal
from graphs.optimize.execute import execute
from graphs.run.settings import RunSettings
from kernelwright.cli.app import main
from kernelwright.screen.report import report
from kernelwright.screen.report.chart import Point, gain_chart
from tests.support.loop import BadFirst, small_services, small_team
from tools.records import Budget
from tools.tracing import RunStore

VOID = {"meta", "br", "line", "circle", "path"}
HOSTILE = "<script>alert('&')</script>\x1b[2J"


class HostileCoder(BadFirst):
    """Writes sources that try to be a part of the page."""

    async def write(self, task: CodingTask) -> Draft | Refusal:
        """The same kernel with a script in it."""
        draft = await super().write(task)
        return draft.model_copy(update={"source": f"{draft.source}# {HOSTILE}\n"}) if isinstance(draft, Draft) else draft


class Balanced(HTMLParser):
    """Names the tags of a page, and complains where one is not closed in its order."""

    def __init__(self) -> None:
        """Nothing is open."""
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember it."""
        self.tags.append(tag)
        self.links += [value or "" for name, value in attrs if name in {"src", "href", "action", "srcset"}]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """It closes the last one that is open."""
        assert tag in VOID or self.open.pop() == tag


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> RunStore:
    """A finished run of four evaluations whose kernels hold a script."""
    folder = tmp_path_factory.mktemp("home") / "runs" / "exp-1"
    folder.parent.mkdir()
    settings = RunSettings(target="h200", memory=False, budget=Budget(evaluations=4), repairs=0)
    services = small_services(folder, settings, team=small_team(HostileCoder()))
    asyncio.run(execute(services, lambda event: None))
    return services.store


@pytest.fixture(scope="module")
def page(store: RunStore) -> str:
    """Its report."""
    return report.render(report.report_facts(store))


def test_a_report_needs_nothing_else(page: str) -> None:
    """No script, no link, no other file: a page that says so to the browser too, and whose tags are closed."""
    parsed = Balanced()
    parsed.feed(page)
    assert parsed.open == []
    assert parsed.links == []
    assert not {"script", "link", "img", "iframe", "object"} & set(parsed.tags)
    assert "default-src 'none'" in page
    assert not re.search(r"url\(|@import", page)


def test_what_a_kernel_says_stays_text(page: str) -> None:
    """A script in a source is shown as what it is, and signs that steer a terminal are not sent on."""
    assert "&lt;script&gt;alert(" in page
    assert "\x1b" not in page


def test_it_says_what_matters_first(page: str) -> None:
    """The champion, what failed and the way to it come before the candidates; estimates say that they are."""
    places = [
        page.index(words) for words in ("What came of it", "2.00x, 50.0 µs est.", "3 wrong: ", "How it came to its best", "Candidates</h2>")
    ]
    assert places == sorted(places)
    assert "time and gain are a cost model's" in page
    assert "It is next." in page
    assert "512 does not fit into shared memory." in page


def test_lines_of_a_chart_stand_at_round_gains() -> None:
    """So that a gain can be read off; the axis says how many evaluations there are."""
    drawn = gain_chart([Point(1, 1.98, "right"), Point(2, 2.03, "right")], "Gain")
    assert re.findall(r">([0-9.]+)x<", drawn) == ["0", "0.5", "1", "1.5", "2"]
    assert ">evaluations 1 to 2<" in drawn


def test_a_chart_has_every_evaluation() -> None:
    """One point each, those without a gain on the axis; a line of the best so far; without any gain there is no chart."""
    points = [Point(1, None, "wrong"), Point(2, 1.5, "right <b>"), Point(3, 1.2, "slower")]
    drawn = gain_chart(points, "Gain")
    assert drawn.count("<circle") == 3
    assert drawn.count('class="wrong"') == 1
    assert "right &lt;b&gt;" in drawn
    assert gain_chart([Point(1, None, "wrong")], "Gain") == ""


def test_only_one_kind_of_gain_is_drawn(store: RunStore) -> None:
    """Where the best was measured, estimates have no place in the chart."""
    assert [point.gain for point in report.points_of(store, estimated=False)] == [None] * 5
    assert [point.gain for point in report.points_of(store, estimated=True)].count(None) == 3


def test_many_candidates_are_lines(store: RunStore) -> None:
    """Beyond a number only lines are shown; those on the way to the best stay whole."""
    facts = report.report_facts(store, detailed=1)
    assert [line["id"] for line in facts["candidates"] if line["whole"]] == [facts["best"]["id"]]
    assert report.render(facts).count("difference, source") == 1


def test_the_command_says_where_it_is(
    store: RunStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`report` writes the file and prints its path; a run that there is none of, and a place that takes none, are wrong input."""
    monkeypatch.chdir(tmp_path)
    home = str(store.folder.parent.parent)

    def run(*words: str) -> int:
        monkeypatch.setattr(sys, "argv", ["kernelwright", "report", *words, "--home", home])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0)

    assert run("exp-1") == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "exp-1.html")
    assert "<title>exp on h200: exp-1</title>" in (tmp_path / "exp-1.html").read_text()
    assert (run("nowhere"), run("exp-1", "--out", str(tmp_path))) == (2, 2)
