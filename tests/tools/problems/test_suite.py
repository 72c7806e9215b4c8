"""Suites: which files they hold, and which of them are chosen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.errors import UserError
from tools.problems.load import load_problem
from tools.problems.suite import SuiteItem, open_suite, select, shard

TRAINING = """import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        {mode}

    def forward(self, x):
        return self.norm(x)

def get_inputs():
    return [torch.rand(16, 8)]

def get_init_inputs():
    return []
"""


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder laid out like a KernelBench clone, with two levels of six empty files."""
    for level in (1, 2):
        folder = tmp_path / "KernelBench" / f"level{level}"
        folder.mkdir(parents=True)
        for number in (1, 2, 3, 4, 10, 19):
            (folder / f"{number}_Op{number}.py").write_text("")
        (folder / "notes.py").write_text("")
    return tmp_path


def _numbers(items: tuple[SuiteItem, ...]) -> list[int]:
    return [item.number for item in items]


def test_a_clone_is_read_by_level_and_number(clone: Path) -> None:
    """Files come in the order of their numbers, not of their names; what has no number is no problem."""
    suite = open_suite(clone)
    assert suite.kind == "kernelbench"
    assert [item.name for item in suite.items[:5]] == [f"level1/{n}_Op{n}" for n in (1, 2, 3, 4, 10)]
    assert [item.level for item in suite.items] == [1] * 6 + [2] * 6


@pytest.mark.parametrize("place", [".", "KernelBench", "KernelBench/level2"])
def test_clone_levels_and_level_are_all_understood(clone: Path, place: str) -> None:
    """Whichever of the folders is named, level 2 is found."""
    assert {item.level for item in open_suite(clone / place, levels=[2]).items} == {2}


def test_any_folder_of_operators_is_a_suite(tmp_path: Path) -> None:
    """Files are numbered by name; those with a leading underscore are helpers."""
    for name in ("b", "a", "_helper"):
        (tmp_path / f"{name}.py").write_text("")
    suite = open_suite(tmp_path)
    assert [(item.name, item.number, item.level) for item in suite.items] == [("a", 1, 0), ("b", 2, 0)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("", [1, 2, 3, 4, 10, 19]),
        ("2-4,19", [2, 3, 4, 19]),
        ("1%3", [1, 4, 10, 19]),
        ("1-4,1%3", [1, 4]),
        ("*op1*", [1, 10, 19]),
        ("0%2,1%3", [1, 2, 4, 10, 19]),
    ],
)
def test_selection(clone: Path, words: str, expected: list[int]) -> None:
    """Numbers, ranges and names add problems; remainders sift them."""
    assert _numbers(select(open_suite(clone, [1]).items, words)) == expected


@pytest.mark.parametrize("words", ["77", "nothing*", "5%0", "2,1%3"])
def test_a_selection_without_any_problem_is_refused(clone: Path, words: str) -> None:
    """What chooses nothing is a mistake, never an empty bench."""
    with pytest.raises(UserError):
        select(open_suite(clone, [1]).items, words)


def test_shards_share_out_everything_once(clone: Path) -> None:
    """Each problem is in exactly one shard, and neighbours are in different ones."""
    items = open_suite(clone).items
    parts = [shard(items, f"{index}/5") for index in range(1, 6)]
    assert sorted(item.name for part in parts for item in part) == sorted(item.name for item in items)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.parametrize("word", ["0/4", "5/4", "a/b", "3"])
def test_an_impossible_shard_is_refused(clone: Path, word: str) -> None:
    """A shard is an index of a count."""
    with pytest.raises(UserError, match="2/8"):
        shard(open_suite(clone).items, word)


def test_missing_folders_and_levels_are_named(clone: Path, tmp_path: Path) -> None:
    """Each mistake gets its own sentence."""
    with pytest.raises(UserError, match="no level 7"):
        open_suite(clone, [7])
    with pytest.raises(UserError, match="There is no folder"):
        open_suite(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no Python file"):
        open_suite(tmp_path / "empty")


@pytest.mark.parametrize(("mode", "training"), [("", True), ("self.eval()", False)])
def test_a_module_is_in_the_mode_its_constructor_leaves_it_in(tmp_path: Path, mode: str, training: bool) -> None:
    """As in KernelBench's own harness nobody calls eval(), so batch norm uses the statistics of the batch; the problem records the mode."""
    path = tmp_path / "1_Norm.py"
    path.write_text(TRAINING.format(mode=mode))
    assert load_problem(path).abi.training is training


def test_a_folder_of_families_is_a_suite(tmp_path: Path) -> None:
    """Operators are named with their family, which `parts.json` puts into a part; one family's folder is a suite, too."""
    for name in ("norms/b", "norms/_helper", "losses/a", "__pycache__/x"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.py").write_text("")
    (tmp_path / "parts.json").write_text('{"development": ["norms"], "held_out": ["losses"]}')
    found = {item.name: (item.number, item.part) for item in open_suite(tmp_path).items}
    assert found == {"losses/a": (1, "held out"), "norms/b": (2, "development")}
    assert [(item.name, item.part) for item in open_suite(tmp_path / "norms").items] == [("b", "development")]


def test_parts_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    """A `parts.json` of another form gets a UserError with an example."""
    (tmp_path / "a.py").write_text("")
    (tmp_path / "parts.json").write_text('{"development": 3}')
    with pytest.raises(UserError, match="held_out"):
        open_suite(tmp_path)
