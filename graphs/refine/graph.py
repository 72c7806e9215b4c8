"""The refinement graph: write → evaluate → repair … → profile, or roll back; a tuning judges its own trials."""

from __future__ import annotations

from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from graphs.refine.nodes import (
    after_evaluate,
    after_repair,
    after_tune,
    after_write,
    evaluate,
    first,
    profile,
    repair,
    roll_back,
    tune,
    write,
)
from graphs.refine.state import RefineOutput, RefineState
from graphs.run.context import Context


def build() -> CompiledStateGraph[Any, Context, Any, Any]:
    """Wire the refinement graph; it inherits the loop's checkpointer."""
    builder = StateGraph(RefineState, context_schema=Context, output_schema=RefineOutput)
    builder.add_node("write", write)
    builder.add_node("evaluate", evaluate)
    builder.add_node("repair", repair)
    builder.add_node("profile", profile)
    builder.add_node("roll_back", roll_back)
    builder.add_node("tune", tune)
    builder.add_conditional_edges(START, first)
    builder.add_conditional_edges("tune", after_tune)
    builder.add_conditional_edges("write", after_write)
    builder.add_conditional_edges("evaluate", after_evaluate)
    builder.add_conditional_edges("repair", after_repair)
    builder.add_edge("profile", END)
    builder.add_edge("roll_back", END)
    return builder.compile(name="refine")


graph = build()
