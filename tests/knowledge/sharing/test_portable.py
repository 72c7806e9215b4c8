"""Export and import as JSON lines."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from knowledge.sharing.travel import packed
from knowledge.store import KnowledgeBase
from tests.knowledge.conftest import MakeBase, MakeOutcome
from tools.errors import KernelwrightError, UserError


@pytest.fixture
def exported(make_base: MakeBase, make_outcome: MakeOutcome, failed: dict[str, Any], tmp_path: Path) -> Path:
    """An export of one entry with a gain and a failure."""
    base = make_base("source")
    base.learn_now(make_outcome())
    base.learn_now(make_outcome(run="run2", **failed))
    base.export(tmp_path / "memory.jsonl")
    return tmp_path / "memory.jsonl"


def test_an_export_carries_strategies_and_evidence(exported: Path, make_base: MakeBase) -> None:
    """Another store that imports it knows the same."""
    other = make_base("other")
    report = other.import_(exported)
    assert (report.added, report.credited, report.known, report.conflicts) == (1, 2, 0, ())
    assert other.all() == make_base("source").all()


def test_importing_twice_adds_nothing(exported: Path, make_base: MakeBase) -> None:
    """Known strategies and trials are left as they are."""
    other = make_base("other")
    other.import_(exported)
    report = other.import_(exported)
    assert (report.added, report.credited, report.known) == (0, 0, 1)


def test_what_is_here_is_never_overwritten(exported: Path, make_base: MakeBase) -> None:
    """The same words with another source are reported as a conflict, and ours are kept."""
    other = make_base("other")
    other.import_(exported)
    exported.write_text(exported.read_text().replace("run run1, candidate cand1", "somebody else"))
    report = other.import_(exported)
    (strategy,) = other.all()
    assert report.conflicts == (strategy.id,)
    assert strategy.source == "run run1, candidate cand1"


def test_an_existing_file_is_not_replaced(exported: Path, base: KnowledgeBase) -> None:
    """Export refuses to overwrite, and leaves nothing behind."""
    before = exported.read_text()
    with pytest.raises(UserError, match="exists already"):
        base.export(exported)
    assert exported.read_text() == before
    assert [file.name for file in exported.parent.iterdir() if file.is_file()] == ["memory.jsonl"]


def test_an_unwritable_place_is_said(base: KnowledgeBase) -> None:
    """A folder that is not there is named."""
    with pytest.raises(KernelwrightError, match="cannot be written"):
        base.export("/proc/nowhere/memory.jsonl")


def cut(text: str) -> str:
    """Lose every line but the header."""
    return text[: text.index("\n") + 1]


def other_version(text: str) -> str:
    """Claim a version that nobody reads."""
    return text.replace('"version":2', '"version":99', 1)


def unknown_field(text: str) -> str:
    """Add a field that no record has."""
    head, line = text.splitlines()
    return f"{head}\n{json.dumps(json.loads(line) | {'surprise': 1})}\n"


def bad_kind(text: str) -> str:
    """Name an action kind outside the vocabulary."""
    return text.replace('"kind":"algorithm"', '"kind":"magic"')


def no_header(text: str) -> str:
    """Lose the header."""
    return text.split("\n", 1)[1]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (cut, "holds 0 of its 1 entries"),
        (other_version, "99"),
        (unknown_field, "Line 2 .* surprise"),
        (bad_kind, r"Line 2 .* strategy\.kind"),
        (no_header, "no header"),
        (lambda _: "", "no header"),
    ],
)
def test_a_bad_file_adds_nothing(exported: Path, base: KnowledgeBase, spoil: Callable[[str], str], message: str) -> None:
    """Every fault is named with its line, and nothing of the file is taken."""
    exported.write_text(spoil(exported.read_text()))
    with pytest.raises(UserError, match=message):
        base.import_(exported)
    assert base.all() == ()


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00"], ids=["missing", "binary"])
def test_an_unreadable_file_is_named(base: KnowledgeBase, tmp_path: Path, content: bytes | None) -> None:
    """A missing or binary file gets one clear error."""
    if content is not None:
        (tmp_path / "in.jsonl").write_bytes(content)
    with pytest.raises(UserError, match=r"in\.jsonl cannot be read"):
        base.import_(tmp_path / "in.jsonl")


def test_a_folder_is_no_file_to_export_to(base: KnowledgeBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`export .` is refused in one line."""
    monkeypatch.chdir(tmp_path)
    for folder in (tmp_path, Path()):
        with pytest.raises(UserError, match="is a folder"):
            base.export(folder)


def test_a_strategy_without_words_is_not_imported(exported: Path, make_base: MakeBase) -> None:
    """A lesson that somebody emptied would take a place in prompts and say nothing."""
    exported.write_text(exported.read_text().replace("One pass over the row wins.", " "))
    with pytest.raises(UserError, match=r"Line 2 .* no lesson"):
        make_base("other").import_(exported)
    assert make_base("other").all() == ()


def test_no_source_leaves_the_machine(make_base: MakeBase, make_outcome: MakeOutcome, tmp_path: Path) -> None:
    """The kernel that an entry came from is neither exported nor sent to a shared memory."""
    base = make_base("source")
    base.learn_now(make_outcome(excerpt="a secret kernel"))
    base.export(tmp_path / "memory.jsonl")
    assert base.all()[0].excerpt == "a secret kernel"
    assert "a secret kernel" not in (tmp_path / "memory.jsonl").read_text()
    sent = [packed(base._log, event) for event in base._log.read()]
    assert any(text and "strategy" in text for text in sent)
    assert not any(text and "a secret kernel" in text for text in sent)
