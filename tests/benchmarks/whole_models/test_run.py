"""The models that are measured whole: their small ones run, what is done is not done again, and the table says what was gained."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from benchmarks.whole_models.report import table
from benchmarks.whole_models.run import CASES, MODELS, main
from tools.autocast.as_cuda import round_as_cpu
from tools.models.form import check_form
from tools.models.loading import ModelFile


@pytest.fixture
def _own_rules() -> Iterator[None]:
    """Give this process the CPU's own rules of autocast back: one that loads a model file keeps CUDA's."""
    yield
    round_as_cpu()


@pytest.mark.usefixtures("_own_rules")
@pytest.mark.parametrize("name", CASES)
def test_a_small_model_runs_and_its_large_one_is_in_the_file(name: str) -> None:
    """Every workload gives finite numbers."""
    for which in CASES[name].values():
        check_form(MODELS / which.partition(":")[0], which.partition(":")[2])
    file, _, factory = CASES[name]["small"].partition(":")
    opened = ModelFile(MODELS / file, factory)
    model = opened.model("cpu")
    for one in opened.workloads(model, 1, "cpu"):
        with torch.no_grad():
            found = model(*one.args, **one.kwargs)
        assert bool((found[0] if isinstance(found, tuple) else found).isfinite().all())


def ended(model: str, **us: float) -> str:
    """A row of a model that has come to its end."""
    asked = {"size": "small", "budget": 1, "most": 1, "against": "better"}
    return json.dumps({"model": model, "what": "ended", **asked, "summary": "said", "kept": ["norm"], "weighted_us": us}) + "\n"


def test_models_that_have_come_to_an_end_are_left_out(tmp_path: Path) -> None:
    """The same command after a kill goes on with the next; here nothing is left to do, and nothing is written."""
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(map(ended, CASES)))
    before = file.read_text()
    main(["--out", str(file), "--size", "small", "--budget", "1", "--most", "1", "--home", str(tmp_path)])
    assert file.read_text() == before


def test_the_gain_is_over_the_best_way_without_our_operators() -> None:
    """Each way against eager of its own session; and the mean is over what was timed."""
    rows = [
        json.loads(ended("one", **{"eager": 100.0, "torch.compile": 80.0, "eager, ours": 60.0, "torch.compile, ours": 40.0})),
        json.loads(ended("one", **{"eager": 200.0, "max-autotune": 100.0, "max-autotune, ours": 50.0})) | {"what": "tuned"},
        json.loads(ended("two", **{"eager": 50.0, "eager, ours": 50.0})),
        json.loads(ended("three")),
        json.loads(ended("four", **{"eager": 50.0, "eager, ours": 90.0})) | {"kept": []},
    ]
    text = table(rows)
    assert "| one | 100 | 1.25x | – | – | 2.00x | 1.67x | 2.50x | – | – | 4.00x | 2.000x | norm |" in text
    assert "| four | 50 | – | – | – | – | – | – | – | – | – | 1.000x | none |" in text
    assert "Geometric mean 1.260x over 3 models; the least 1.000x" in text[-1]
