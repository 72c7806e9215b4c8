"""Bundles on disk: whole, readable, and every change of a byte named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.evidence import real_bundle, timed_elsewhere
from tools.errors import UserError
from tools.evidence import damages, make_bundle, read_bundle, write_bundle
from tools.evidence.claims import Standing
from tools.evidence.consistency import consistency
from tools.evidence.manifest import MANIFEST


def test_a_bundle_reads_as_it_was_written(folder: Path) -> None:
    """Everything an evaluation rests on survives the way to disk and back: errors, seeds, log, profile, origin."""
    assert read_bundle(folder) == real_bundle()
    assert real_bundle().evaluation.seeds


def test_raw_times_survive(tmp_path: Path) -> None:
    """Every raw time of a measured evaluation is in the bundle."""
    write_bundle(timed_elsewhere(), tmp_path / "timed")
    timing = read_bundle(tmp_path / "timed").evaluation.timing
    assert timing is not None
    assert timing == timed_elsewhere().evaluation.timing
    assert timing.raw is not None
    assert len(timing.raw.candidate) == timing.candidate.count


def test_baselines_under_other_flags_survive(folder: Path, tmp_path: Path) -> None:
    """What the reference takes under another policy's flags is in a file of its own, and shown as told, not checked."""
    baselines = real_bundle().baselines
    assert baselines is not None
    written = real_bundle().model_copy(update={"other_baselines": {"tf32": baselines}})
    write_bundle(written, tmp_path / "both")
    assert read_bundle(tmp_path / "both") == written
    told = [claim for claim in consistency(written) if claim.name == "flags of tf32"]
    assert [claim.standing for claim in told] == [Standing.UNCHECKED]
    assert not (folder / "other_baselines.json").exists()


def test_an_untouched_bundle_has_no_damage(folder: Path) -> None:
    """What was just written is what the manifest says."""
    assert damages(folder) == ()


def test_a_changed_byte_in_any_file_is_found_and_named(folder: Path) -> None:
    """One flipped bit in each file, one file at a time, is found in that file and in no other."""
    for path in sorted(folder.iterdir()):
        before = path.read_bytes()
        # an empty file has no byte to flip: one is added
        place = len(before) // 2
        path.write_bytes(before[:place] + bytes([(before[place] if before else 0) ^ 1]) + before[place + 1 :])
        assert [damage.file for damage in damages(folder)] == [path.name]
        path.write_bytes(before)
    assert damages(folder) == ()


def test_every_byte_of_the_manifest_counts(folder: Path) -> None:
    """The manifest itself cannot be changed anywhere, not even in its spaces."""
    path = folder / MANIFEST
    before = path.read_bytes()
    for place in range(0, len(before), 7):
        path.write_bytes(before[:place] + bytes([before[place] ^ 1]) + before[place + 1 :])
        assert damages(folder), place
    path.write_bytes(before + b"\n")
    assert [damage.file for damage in damages(folder)] == [MANIFEST]


def test_nothing_can_be_added_to_the_manifest(folder: Path) -> None:
    """Another order of the files, or a remark beside a hash, is found although every hash is right."""
    path = folder / MANIFEST
    for change in (lambda files: dict(reversed(files.items())), lambda files: {name: {**one, "by": "me"} for name, one in files.items()}):
        value = json.loads(path.read_bytes())
        text = json.dumps(value | {"files": change(value["files"])}, indent=1) + "\n"
        before = path.read_bytes()
        path.write_text(text)
        assert [damage.file for damage in damages(folder)] == [MANIFEST]
        path.write_bytes(before)


def test_files_that_come_or_go_are_named(folder: Path) -> None:
    """A file that was added and one that was removed are both named."""
    (folder / "extra.txt").write_text("x")
    (folder / "kernel.py").unlink()
    assert [str(damage).partition(":")[0] for damage in damages(folder)] == ["extra.txt", "kernel.py"]


def test_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    """A file replaced by a link to an equal one is damage: a stranger's bundle must not make us read other files."""
    outside = tmp_path / "outside.py"
    outside.write_bytes((folder / "kernel.py").read_bytes())
    (folder / "kernel.py").unlink()
    (folder / "kernel.py").symlink_to(outside)
    assert [damage.file for damage in damages(folder)] == ["kernel.py"]


def test_an_unwritable_place_is_one_clear_error(tmp_path: Path) -> None:
    """A place where nothing can be made, one that is taken and one without a parent are refused, and nothing is left there."""
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").touch()
    for place in (Path("/proc/bundle"), tmp_path / "taken", tmp_path / "no" / "bundle"):
        with pytest.raises(UserError, match=str(place.parent)):
            write_bundle(real_bundle(), place)
    assert [path.name for path in tmp_path.rglob("*")] == ["taken", "file"]


def test_a_weakened_evaluation_goes_into_no_bundle() -> None:
    """An evaluation with a defence switched off is refused."""
    bundle = real_bundle()
    evaluation = bundle.evaluation.model_copy(update={"weakened": ("poison",)})
    with pytest.raises(UserError, match="poison"):
        make_bundle(bundle.request, evaluation, bundle.origin)


def test_a_bundle_made_by_other_ways_of_a_weakened_evaluation_is_not_written(tmp_path: Path) -> None:
    """The writer looks too: nothing is left where the bundle would have been."""
    bundle = real_bundle()
    weak = bundle.model_copy(update={"evaluation": bundle.evaluation.model_copy(update={"weakened": ("red zones",)})})
    with pytest.raises(UserError, match="red zones"):
        write_bundle(weak, tmp_path / "bundle")
    assert list(tmp_path.iterdir()) == []
