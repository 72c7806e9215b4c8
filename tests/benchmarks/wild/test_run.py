"""What becomes of a suite's operators without a GPU, stage by stage."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.kept_rows import KeptRows
from benchmarks.wild.row import Ended, WildRow
from benchmarks.wild.run import SUITE, items_of, line, main, more_of, run
from benchmarks.wild.stages import Here
from tools.errors import UserError
from tools.hardware import load_sheet
from tools.problems.suite import open_suite

FORM = """import torch

ROWS = 4096
SMALL_SIZES = [{{"ROWS": 5}}]
{more}

def {name}(x):
    return {body}


def example_inputs():
    return (torch.randn(ROWS, 64),)
"""
FILES = {
    "norms/doubled": FORM.format(name="doubled", body="torch.relu(x) * 2", more="MORE_SIZES = [{'ROWS': 64}]"),
    "norms/orthogonal": FORM.format(name="orthogonal", body="torch.linalg.qr(x).Q", more=""),
    "norms/broken": FORM.format(name="broken", body="x @ x", more=""),
}


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A suite of one family: an operator with a kernel, one that is left to PyTorch, one that does not run."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.py").write_text(text)
    (tmp_path / "parts.json").write_text('{"development": ["norms"], "held_out": ["losses"]}')
    return tmp_path


async def test_each_operator_ends_in_a_row_that_says_how_far_it_came(suite: Path) -> None:
    """Kernels that were not judged are unknown, what no template does has its reasons, a bad file says what is wrong; times are kept."""
    kept = KeptRows(None)
    await run(open_suite(suite).items, kept, load_sheet("h200"), Here(), judge=False, more_sizes=True)
    rows = {(row.operator, row.sizes.get("ROWS")): row for row in map(WildRow.model_validate, kept.rows)}
    assert {key: row.ended for key, row in rows.items()} == {
        ("norms/doubled", None): Ended.UNKNOWN,
        ("norms/doubled", 64): Ended.UNKNOWN,
        ("norms/orthogonal", None): Ended.NOTHING,
        ("norms/broken", None): Ended.UNREADABLE,
    }
    assert [one.operator for one in rows["norms/orthogonal", None].left] == ["aten.linalg_qr.default"]
    assert rows["norms/doubled", None].generated == ("pointwise: relu+mul",)
    assert rows["norms/doubled", None].trace_s > 0
    assert "norms/broken: unreadable" in line(rows["norms/broken", None])


async def test_what_is_done_is_not_done_again(suite: Path, tmp_path: Path) -> None:
    """A second call with the same file adds nothing."""
    out = tmp_path / "rows.jsonl"
    items = [item for item in open_suite(suite).items if item.name == "norms/broken"]
    for _ in range(2):
        await run(items, KeptRows(out), load_sheet("h200"), Here(), judge=False, more_sizes=False)
    assert len(KeptRows(out).rows) == 1


def test_a_part_has_to_be_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody runs the part that is set apart by leaving a word out."""
    monkeypatch.setattr("sys.argv", ["run", "rows.jsonl"])
    with pytest.raises(SystemExit):
        main()
    assert "--part" in capsys.readouterr().err


def test_other_sizes_are_read_from_the_file() -> None:
    """`MORE_SIZES` of a file of the suite are changes to its own constants."""
    item = next(item for item in open_suite(SUITE).items if item.name == "rotary/rotary_halves")
    assert list(more_of(item)) == [{"TOKENS": 64}, {"TOKENS": 1024}]


def test_a_suite_with_a_part_set_apart_is_never_taken_whole(suite: Path, tmp_path: Path) -> None:
    """Without a part there is one clear error; a suite that has none is taken as it is."""
    whole = tmp_path / "whole"
    whole.mkdir()
    (whole / "doubled.py").write_text(FILES["norms/doubled"])

    with pytest.raises(UserError, match="set apart"):
        items_of(suite, "", "")

    assert [item.name for item in items_of(whole, "", "")] == ["doubled"]
