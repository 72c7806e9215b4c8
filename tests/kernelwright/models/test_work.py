"""What is known of a whole model's work is in a file while it goes on: the same command goes on after a kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphs.run.settings import RunSettings
from kernelwright.models.records import ModelSettings
from kernelwright.models.work import FOLDER, work_of
from tools.errors import UserError
from tools.models.form import NOT_PROVEN_YET, check_package_place
from tools.models.records import Capture

SETTINGS = ModelSettings(run=RunSettings())
CAPTURE = Capture(title="M", clock="", us={"a": 1.0}, weights={"a": 1.0}, modules=1, groups=())


def test_the_same_command_finds_what_was_captured_and_which_runs_were_begun(tmp_path: Path) -> None:
    """Until it has come to its end, also with more time; another model, place or budget begins anew."""
    file = tmp_path / "net.py"
    file.write_text("x = 1\n")
    words = (file, "x = 1\n", "", tmp_path / "out", SETTINGS, tmp_path)
    work = work_of(*words)
    assert work.done is None
    work.begin(CAPTURE, ())
    work.note_run("norm", "norm-1")
    again = work_of(*words)
    assert again.done is not None
    assert (again.done.capture, again.run_of("norm"), again.run_of("other")) == (CAPTURE, "norm-1", "")
    others = [
        work_of(file, "x = 2\n", "", tmp_path / "out", SETTINGS, tmp_path),
        work_of(file, "x = 1\n", "", tmp_path / "elsewhere", SETTINGS, tmp_path),
        work_of(file, "x = 1\n", "", tmp_path / "out", SETTINGS.model_copy(update={"budget": 3}), tmp_path),
    ]
    assert not any(one.done for one in others)
    longer = SETTINGS.model_copy(update={"minutes": 9.0, "rounds": 5})
    assert work_of(file, "x = 1\n", "", tmp_path / "out", longer, tmp_path).done is not None
    again.end()
    assert work_of(*words).done is None


def test_a_record_that_cannot_be_read_says_what_to_do(tmp_path: Path) -> None:
    """It is the user's to remove."""
    file = tmp_path / "net.py"
    file.write_text("x = 1\n")
    words = (file, "x = 1\n", "", tmp_path / "out", SETTINGS, tmp_path)
    work_of(*words).begin(CAPTURE, ())
    [kept] = (tmp_path / FOLDER).iterdir()
    kept.write_text("{")
    with pytest.raises(UserError, match="begins anew"):
        work_of(*words)


def test_a_package_whose_proof_was_cut_off_is_written_anew(tmp_path: Path) -> None:
    """Any other folder that holds something is refused."""
    out = tmp_path / "faster"
    out.mkdir()
    (out / "report.json").write_text("{}")
    with pytest.raises(UserError, match="exists already"):
        check_package_place(out)
    (out / "report.json").write_text(f'{{"what": "{NOT_PROVEN_YET}"}}')
    check_package_place(out)
