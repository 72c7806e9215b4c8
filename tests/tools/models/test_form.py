"""A model's file by its text alone, and the place of a package: slips are refused before anything is run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.errors import UserError
from tools.models.form import check_form, check_package_place

MODEL = "def make():\n    ...\n\nbig = make\n\ndef workloads(model):\n    ...\n"


def written(folder: Path, text: str) -> Path:
    """A file of a model."""
    file = folder / "model.py"
    file.write_text(text)
    return file


@pytest.mark.parametrize("factory", ["", "make", "big"])
def test_a_file_with_what_it_takes_is_fine(tmp_path: Path, factory: str) -> None:
    """By make() or by another factory, whatever binds its name."""
    check_form(written(tmp_path, MODEL), factory)


def test_an_operators_file_will_do(tmp_path: Path) -> None:
    """Model and get_inputs() are a whole model, too."""
    check_form(written(tmp_path, "class Model:\n    ...\n\ndef get_inputs():\n    ...\n"), "")


@pytest.mark.parametrize(
    ("text", "factory", "said"),
    [
        ("x = 1\n", "", r"model.py defines no make\(\)"),
        ("def make():\n    ...\n", "", r"defines no workloads\(\)"),
        ("class Model:\n    ...\n", "", r"defines no get_inputs\(\)"),
        (MODEL, "bigg", r"defines no bigg\(\)"),
        ("def make(:\n", "", "line 1"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, text: str, factory: str, said: str) -> None:
    """The first name that the file should have, or where it is no Python."""
    with pytest.raises(UserError, match=said):
        check_form(written(tmp_path, text), factory)


def test_the_nearest_factory_is_named(tmp_path: Path) -> None:
    """A slip of the keys is told the name that was meant."""
    with pytest.raises(UserError) as refused:
        check_form(written(tmp_path, MODEL), "bigg")
    assert "Did you mean 'big'?" in refused.value.mend


def test_a_package_needs_a_name_and_an_empty_place(tmp_path: Path) -> None:
    """A folder that holds something is not written to, and one whose name no import can say is refused."""
    check_package_place(tmp_path / "faster_model")
    with pytest.raises(UserError, match="no name that Python can import"):
        check_package_place(tmp_path / "faster-model")
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    with pytest.raises(UserError, match="exists already"):
        check_package_place(tmp_path / "taken")
