"""What the generator emits, written down and compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from scripts.emitted_kernels import differences, dump, listed
from tests.tools.codegen.compute_samples import module
from tests.tools.codegen.samples import function

NORMED = module("self.norm = torch.nn.BatchNorm1d(c)", "return self.norm(x)", "torch.randn(4, 8)")


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A folder of two operators."""
    folder = tmp_path / "suite"
    folder.mkdir()
    (folder / "softmax.py").write_text(function("torch.softmax(x * 2, -1)"))
    (folder / "normed.py").write_text(NORMED)
    return folder


def _written(suite: Path, out: Path) -> Path:
    for job in listed([suite], out, "h200", 1, eval_mode=True):
        assert dump(job).endswith("2 sources")
    return out


def test_two_dumps_of_one_generator_are_the_same(suite: Path, tmp_path: Path) -> None:
    """Every problem, in eval mode too, leaves its sources and choices, and a second dump has them byte by byte."""
    one, two = _written(suite, tmp_path / "one"), _written(suite, tmp_path / "two")
    assert {"suite-softmax.initial.py", "suite-softmax.choice0.py", "eval-suite-normed.choices"} <= {path.name for path in one.iterdir()}
    assert differences(one, two, {}) == []


def test_a_changed_kernel_and_a_lacking_one_are_named(suite: Path, tmp_path: Path) -> None:
    """A comparison lists the file that differs and the one that only one dump has."""
    one, two = _written(suite, tmp_path / "one"), _written(suite, tmp_path / "two")
    changed = two / "suite-softmax.choice0.py"
    changed.write_text(changed.read_text().replace("tl.exp", "tl.exp2"))
    (two / "suite-normed.initial.py").unlink()
    assert differences(one, two, {}) == ["differs: suite-softmax.choice0.py", "only before: suite-normed.initial.py"]


def test_a_name_that_was_changed_on_purpose_is_no_difference(tmp_path: Path) -> None:
    """Whole names are renamed before the comparison; a longer name that contains one stays."""
    for folder, text in (("one", "halves(x); halves_kernel(x)\n"), ("two", "split(x); halves_kernel(x)\n")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").write_text(text)
    assert differences(tmp_path / "one", tmp_path / "two", {"halves": "split"}) == []
    assert differences(tmp_path / "one", tmp_path / "two", {}) == ["differs: a.py"]


def test_a_problem_that_fails_is_written_down(tmp_path: Path) -> None:
    """What cannot be loaded leaves its reason, so that a comparison sees where it begins or ends to fail."""
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "broken.py").write_text("def f(x):\n    return x +\n")
    (job,) = listed([tmp_path / "suite"], tmp_path / "out", "h200", 1, eval_mode=False)
    assert "sources" not in dump(job)
    assert (tmp_path / "out" / "suite-broken.failed").read_text()
