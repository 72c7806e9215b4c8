"""What `langgraph dev` is given: every graph that langgraph.json names loads by its file, as the server loads it, and can be drawn."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SETTINGS = json.loads((ROOT / "langgraph.json").read_text())
NODES = {
    "optimize": {"measure", "recall", "plan", "refine", "review", "learn", "confirm"},
    "refine": {"write", "evaluate", "repair", "profile", "roll_back", "tune"},
}
ENDS = {"optimize": "delivered", "refine": "results"}
"""What each gives back."""


def _loaded(entry: str) -> Any:
    """Load a graph as the server does: its file, then the name behind the colon."""
    file, _, name = entry.partition(":")
    spec = importlib.util.spec_from_file_location(f"studio_{Path(file).parent.name}", ROOT / file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, name)


def test_every_graph_is_named() -> None:
    """The loop and the refinement."""
    assert set(SETTINGS["graphs"]) == set(NODES)


@pytest.mark.parametrize("name", SETTINGS["graphs"])
def test_a_graph_loads_by_its_file_and_can_be_drawn(name: str) -> None:
    """Its picture has every node, it brings no checkpointer (the server has its own), and its input and context have schemas."""
    graph = _loaded(SETTINGS["graphs"][name])
    picture = graph.get_graph().draw_mermaid()
    assert all(f"{node}({node})" in picture for node in NODES[name])
    assert graph.checkpointer is None
    assert "run" in graph.get_input_jsonschema()["properties"]
    assert set(graph.get_context_jsonschema()["properties"]) == {"problem_file", "home"}
    assert ENDS[name] in graph.get_output_jsonschema()["properties"]
