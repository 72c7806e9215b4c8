"""What tells one installation of Triton from another without reading it."""

from __future__ import annotations

from pathlib import Path

import pytest
from triton.runtime import cache

from tools.evaluation.untrusted.triton_identity import installed_key, spare_hashing

RECORD = "sample_package/a.py,sha256=AAAA,3\nsample_package/b.so,sha256=BBBB,5\nsample_package/__pycache__/a.pyc,,\n"


def _installed(at: Path, record: str, version: str = "1.0") -> str:
    folder = at / f"sample_package-{version}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: sample-package\nVersion: {version}\n")
    (folder / "RECORD").write_text(record)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(at))
        return installed_key("sample_package")


def test_the_same_files_have_one_name_wherever_they_are(tmp_path: Path) -> None:
    """What another installer writes beside a package's own files makes no difference."""
    beside = RECORD + "sample_package-1.0.dist-info/INSTALLER,sha256=CCCC,2\n../../bin/sample,sha256=DDDD,2\n"

    assert _installed(tmp_path / "here", RECORD) == _installed(tmp_path / "there", beside)


@pytest.mark.parametrize(("record", "version"), [(RECORD.replace("BBBB", "EEEE"), "1.0"), (RECORD, "1.1")], ids=["a file", "version"])
def test_other_files_have_another_name(tmp_path: Path, record: str, version: str) -> None:
    """A compiled library that is another one, or another version, is another installation."""
    assert _installed(tmp_path / "here", RECORD) != _installed(tmp_path / "there", record, version)


def test_what_nobody_wrote_down_has_no_name(tmp_path: Path) -> None:
    """A package that is not there, or whose installer wrote no digests, is left to whoever can read it."""
    assert installed_key("no_such_package_of_ours") == ""
    assert _installed(tmp_path, "sample_package/a.py,,\n") == ""


def test_triton_takes_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Triton's own cache calls is answered by it, where its installer wrote digests."""
    monkeypatch.setattr(cache, "triton_key", lambda: "as Triton reads it")

    spare_hashing()

    assert cache.triton_key() == (installed_key() or "as Triton reads it")
