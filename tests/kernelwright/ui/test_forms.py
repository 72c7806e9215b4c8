"""A run is steered from its page, and from no other site's."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from graphs.run.steering import STEER, Steer
from kernelwright.ui.app import build_app
from kernelwright.ui.guard import LONGEST_FORM
from tests.support.loop import small_services
from tools.tracing import RunStore

RUN = "/runs/begun-1"


@pytest.fixture
def pages(tmp_path: Path) -> TestClient:
    """Pages over a run that has begun."""
    small_services(tmp_path / "runs" / "begun-1").store.close()
    return TestClient(build_app(tmp_path, ["testserver"]))


def _word(pages: TestClient) -> str:
    return pages.get(RUN).text.partition('name="word" value="')[2].partition('"')[0]


def _asked(home: Path) -> list[tuple[str, str]]:
    store = RunStore(home / "runs" / "begun-1")
    found = [(one.kind, one.text) for one in store.all(STEER, Steer).values()]
    store.close()
    return found


def test_what_a_form_asks_stands_in_the_record(pages: TestClient, tmp_path: Path) -> None:
    """A hint and a pause are kept as `kernelwright steer` keeps them, and the page shows them."""
    word = _word(pages)
    pages.post(f"{RUN}/steer", data={"word": word, "kind": "hint", "text": "Mind the <tail>."})
    text = pages.post(f"{RUN}/steer", data={"word": word, "kind": "pause", "text": ""}).text
    assert _asked(tmp_path) == [("hint", "Mind the <tail>."), ("pause", "")]
    assert "Mind the &lt;tail&gt;." in text
    assert "Go on" in text


def test_a_refusal_is_one_line(pages: TestClient) -> None:
    """What `steer` refuses is a page with status 409 that says why."""
    word = _word(pages)
    for kind, text, why in (("pin", "zzz", "0 ids of candidates"), ("continue", "", "is not paused"), ("stop", "", "cannot be asked")):
        found = pages.post(f"{RUN}/steer", data={"word": word, "kind": kind, "text": text})
        assert found.status_code == 409
        assert why in found.text


def test_no_other_sites_form_is_taken(pages: TestClient, tmp_path: Path) -> None:
    """Without the word of our pages, from another origin, or endless: nothing is written."""
    word = _word(pages)
    given = {"kind": "pause", "text": ""}
    assert pages.post(f"{RUN}/steer", data=given).status_code == 409
    assert pages.post(f"{RUN}/steer", data={**given, "word": "guess"}).status_code == 409
    assert pages.post(f"{RUN}/steer", data={**given, "word": word}, headers={"origin": "http://evil.example"}).status_code == 409
    assert pages.post(f"{RUN}/steer", data={**given, "word": word, "text": "x" * LONGEST_FORM}).status_code == 409
    assert pages.get(f"{RUN}/steer").status_code == 405
    assert _asked(tmp_path) == []
