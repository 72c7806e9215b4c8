"""What must not leave this machine where runs are tasks on a cluster, and what is wrong with a cluster's address, is said in a line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agents import team_settings
from kernelwright.bench.elsewhere import check_elsewhere
from kernelwright.cli.app import main
from tests.kernelwright.bench.small_bench import small_settings
from tests.support.ray_nodes import free_port
from tools.errors import UserError


def test_runs_go_elsewhere_on_a_cluster_only(tmp_path: Path) -> None:
    """With the local evaluator there is nowhere to go."""
    with pytest.raises(UserError, match="on a Ray cluster only"):
        check_elsewhere(small_settings(tmp_path))


def test_agents_that_ask_a_model_stay_with_its_key(tmp_path: Path) -> None:
    """A key is never sent to a node."""
    settings = small_settings(tmp_path)
    run = settings.run.model_copy(update={"evaluator": "ray"})
    check_elsewhere(settings.model_copy(update={"run": run}))
    teams = {"solo": team_settings("some-model", "http://127.0.0.1:1/v1", (), "", "")}
    with pytest.raises(UserError, match="its key stays on this machine"):
        check_elsewhere(settings.model_copy(update={"run": run, "agents": teams}))


def test_learning_arms_need_a_server_that_all_nodes_reach(tmp_path: Path) -> None:
    """Else no run would know what another one learnt."""
    settings = small_settings(tmp_path)
    run = settings.run.model_copy(update={"evaluator": "ray"})
    with pytest.raises(UserError, match="only share what they learn by a Chroma server"):
        check_elsewhere(settings.model_copy(update={"run": run, "memories": ("learning",)}))


def test_a_cluster_that_does_not_answer_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit status 2 before anything is made."""
    out = tmp_path / "out"
    words = ["bench", "data/operators", "--evaluator", f"ray:127.0.0.1:{free_port()}", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["kernelwright", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "No Ray cluster answers at 127.0.0.1" in said
    assert "Traceback" not in said
    assert not out.exists()
