"""`kernelwright explain` at the command line: the stages of an operator, without running it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelwright.cli.app import main
from tests.tools.codegen.compute_samples import module
from tests.tools.codegen.samples import function

OPERATORS = {
    "chain": function("F.glu(torch.softmax(x * 2, -1)).clone()"),
    "product": function("torch.relu(x @ y)", "torch.randn(ROWS, COLS), torch.randn(COLS, ROWS)", "x, y"),
    "singular": function("torch.linalg.svdvals(x * 2) + 1"),
    "branches": function("x + 1 if x.sum() > 0 else x - 1"),
    "doubled": function("x * 2"),
    "talkative": function("(print('I am here'), x * 2)[1]"),
    "normed": module(
        "self.layer = torch.nn.Linear(c, 16); self.norm = torch.nn.BatchNorm1d(16); self.eval()",
        "return self.norm(self.layer(x))",
        "torch.randn(4, 8)",
    ),
}
STAGES = ("graph", "rewrites", "regions", "schedule", "launches", "kernels", "library")

Explain = Callable[..., str]


@pytest.fixture
def explain(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Explain:
    """Explain an operator by its name on an H200; return what is printed."""

    def run(name: str, *options: str) -> str:
        file = tmp_path / f"{name}.py"
        file.write_text(OPERATORS[name])
        monkeypatch.setenv("COLUMNS", "140")
        monkeypatch.setattr(sys, "argv", ["kernelwright", "explain", str(file), "--target", "h200", *options])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        return capsys.readouterr().out

    return run


def _facts(said: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(said)
    return found


def test_every_stage_is_shown_in_order(explain: Explain) -> None:
    """All stages have a heading, times say that they are estimated, and the best choice of the cost model is what is explained."""
    said = explain("chain")
    places = [said.index(f"\n{stage}: ") for stage in STAGES]
    assert places == sorted(places)
    assert "choice 1 of" in said
    assert "µs (estimated)" in said
    assert "aten.softmax.int" in said


def test_a_stage_can_be_shown_alone(explain: Explain) -> None:
    """What is not asked for is not printed, on the screen or as JSON."""
    said = explain("doubled", "--stage", "regions", "--stage", "library")
    assert [stage for stage in STAGES if f"\n{stage}: " in said] == ["regions", "library"]
    facts = _facts(explain("doubled", "--stage", "regions", "--json"))
    assert set(facts) == {"problem", "target", "policy", "explained", "us", "regions"}


def test_the_rewrites_of_the_canonical_form_are_named(explain: Explain) -> None:
    """A gated unit is shown as the operators it became, and a copy as gone."""
    rewrites = {one["operator"]: one["became"] for one in _facts(explain("chain", "--json"))["rewrites"]}
    assert rewrites == {"glu": ["chunk", "sigmoid", "mul"], "clone": []}


def test_what_a_schedule_does_with_the_graph_is_a_rewrite_too(explain: Explain) -> None:
    """A batch norm in eval mode is folded into weights, which the table says of that node."""
    (folded,) = (one for one in _facts(explain("normed", "--json"))["rewrites"] if one["by"] == "batch norm folded")
    assert folded["operator"] == "batch_norm"


def test_regions_launches_and_kernels_belong_together(explain: Explain) -> None:
    """Each generated region has launches and a kernel of its name, and its operators are those of the graph."""
    facts = _facts(explain("chain", "--json"))
    generated = {one["id"] for one in facts["regions"] if one["template"] != "library"}
    assert generated
    assert {one["region"] for one in facts["launches"]} == generated
    assert {one["region"] for one in facts["kernels"] if one["kind"] == "kernel"} == generated
    lines = facts["source"].split("\n")
    for one in facts["kernels"]:
        assert one["name"] in "\n".join(lines[one["line"] - 1 : one["line"] + one["lines"] - 1])


def test_the_initial_schedule_says_how_the_model_weighs_what_is_left(explain: Explain) -> None:
    """Nothing is generated; a product that could be is held against the library's, with both times."""
    facts = _facts(explain("product", "--initial", "--json"))
    assert {one["template"] for one in facts["regions"]} == {"library"}
    assert not facts["launches"]
    reasons = [one["reason"] for one in facts["library"] if "aten.matmul.default" in one["operators"]]
    assert len(reasons) == 1
    assert "against the library's" in reasons[0]
    assert "estimated" in reasons[0]


def test_an_operator_that_cannot_be_generated_says_why(explain: Explain) -> None:
    """Singular values have no template; what stands around it is generated."""
    (left,) = _facts(explain("singular", "--json"))["library"]
    assert left["operators"] == ["aten.linalg_svdvals.default"]
    assert "no template" in left["reason"]


def test_a_reference_that_cannot_be_traced_is_explained(explain: Explain) -> None:
    """Where a branch depends on data everything is left to the reference, and the reason is named."""
    facts = _facts(explain("branches", "--json"))
    assert not facts["graph"]
    assert "nothing of it can be generated" in facts["explained"]
    assert "it goes on by a number that it reads from a tensor" in facts["library"][0]["reason"]
    assert facts["us"] is None


def test_the_source_is_printed_on_request(explain: Explain) -> None:
    """The emitted file follows the tables."""
    said = explain("doubled", "--stage", "kernels", "--source")
    assert "@triton.jit" in said
    assert said.index("class ModelNew") > said.index("kernels: ")


def test_a_choice_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The message says how many choices there are."""
    (tmp_path / "doubled.py").write_text(OPERATORS["doubled"])
    monkeypatch.setattr(sys, "argv", ["kernelwright", "explain", str(tmp_path / "doubled.py"), "--target", "h200", "--choice", "99"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "no choice 99" in capsys.readouterr().err


def test_json_is_all_of_standard_output(explain: Explain) -> None:
    """An operator that prints when it is called prints elsewhere."""
    assert _facts(explain("talkative", "--json"))["problem"] == "talkative"


def test_a_choice_that_cannot_be_written_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A number given to the operator that differs between sizes and follows from no shape is one line, and exit status 2."""
    text = "import torch\n\nREACH = 300\nSMALL_SIZES = [{'REACH': 3}, {'REACH': 5}]\n\n\ndef near(x, reach):\n"
    text += "    return torch.sort((torch.arange(512, device=x.device) >= reach) * x)[0]\n\n\n"
    text += "def example_inputs():\n    return torch.randn(64, 512), REACH\n"
    (tmp_path / "near.py").write_text(text)
    monkeypatch.setattr(sys, "argv", ["kernelwright", "explain", str(tmp_path / "near.py"), "--target", "h200", "--initial"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "cannot write near: a number varies with the sizes" in capsys.readouterr().err
