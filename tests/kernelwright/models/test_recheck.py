"""`kernelwright recheck`: a package is checked again, and says where its kernels were tried."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from kernelwright.api.rechecking import note_tried, recheck
from kernelwright.cli.app import main
from tests.kernelwright.models.test_model import MODEL
from tools.errors import UserError
from tools.models.packaging.package import tried_text

HERE = ("NVIDIA H200", "2.11.0", "3.6.0")


def test_where_kernels_were_tried_is_noted_once(tmp_path: Path) -> None:
    """Beside what was there; the file stays plain Python that a package imports."""
    file = tmp_path / "tried.py"
    file.write_text(tried_text("NVIDIA H200", [HERE]))
    for device in ("NVIDIA L40S", "NVIDIA L40S"):
        note_tried(file, (device, "2.12.0", "3.7.0"))
    names: dict[str, object] = {}
    exec(file.read_text(), names)
    assert (names["MADE_FOR"], names["TRIED"]) == ("NVIDIA H200", (HERE, ("NVIDIA L40S", "2.12.0", "3.7.0")))


def test_a_folder_that_is_no_package_is_refused(tmp_path: Path) -> None:
    """With what would be right."""
    with pytest.raises(UserError, match="is no package"):
        recheck(tmp_path)


def test_operators_that_were_not_judged_are_proven_with_their_model(tmp_path: Path) -> None:
    """There is no evidence to verify: the model's file is asked for."""
    (tmp_path / "tried.py").write_text(tried_text("NVIDIA H200", [HERE]))
    with pytest.raises(UserError, match="not judged by themselves"):
        recheck(tmp_path)


@pytest.mark.thorough
def test_a_package_is_checked_operator_by_operator_and_on_the_whole_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a GPU kernels are interpreted, and nothing is noted; a kernel that its evidence is not of fails."""
    (tmp_path / "net.py").write_text(MODEL)
    (tmp_path / "neighbour.py").write_text("WIDTH = 8\n")
    monkeypatch.chdir(tmp_path)

    def ran(*words: str) -> tuple[object, dict[str, object]]:
        monkeypatch.setattr(sys, "argv", ["kernelwright", *words, "--json"])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, json.loads(capsys.readouterr().out)

    ran("model", "net.py", "--out", "faster", "--budget", "1", "--largest", "5", "--no-memory", "--tune", "0", "--home", "home")
    code, found = ran("recheck", "faster", "--model", "net.py")
    assert not code
    [one] = found["operators"]
    assert (one["name"], one["verdict"], one["tier"], one["failed"]) == ("scaled", "PASS", "estimated", [])
    assert found["proof"]["hits"] == {"scaled": 4}
    assert not found["noted"]
    kernel = tmp_path / "faster" / "kernels" / "scaled.py"
    kernel.write_text(kernel.read_text() + "\n# changed\n")
    code, found = ran("recheck", "faster")
    assert code == 1
    assert "evidence" in found["operators"][0]["verdict"]
