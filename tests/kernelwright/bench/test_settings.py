"""What the words of `kernelwright bench` become."""

from __future__ import annotations

from kernelwright.bench.settings import read_team


def test_a_setting_of_the_models_reaches_every_team() -> None:
    """`--model-set` holds for a team by its name, for a model of its own, and for single roles."""
    for word in ("solo", "full:other", "planner=llm+coder=llm"):
        team = read_team(word, "desk", "http://127.0.0.1:1/v1", "", "", ["timeout_s=7200"])
        assert team.model is not None
        assert team.model.timeout_s == 7200
