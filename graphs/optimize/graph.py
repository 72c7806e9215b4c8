"""The loop's graph; all its wiring is here. Exported without a checkpointer: whoever runs it brings one."""

from __future__ import annotations

from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Checkpointer

from graphs.optimize.nodes import after_recall, confirm, fan_out, learn, measure, plan, recall, review, route
from graphs.optimize.state import OptimizeInput, OptimizeOutput, OptimizeState
from graphs.refine.graph import build as build_refine
from graphs.run.context import Context


def build(checkpointer: Checkpointer = None) -> CompiledStateGraph[Any, Context, Any, Any]:
    """Wire the loop."""
    builder = StateGraph(OptimizeState, context_schema=Context, input_schema=OptimizeInput, output_schema=OptimizeOutput)
    builder.add_node("measure", measure)
    builder.add_node("recall", recall)
    builder.add_node("plan", plan)
    builder.add_node("refine", build_refine())
    builder.add_node("review", review)
    builder.add_node("learn", learn)
    builder.add_node("confirm", confirm)
    builder.add_edge(START, "measure")
    builder.add_edge("measure", "recall")
    builder.add_conditional_edges("recall", after_recall)
    builder.add_conditional_edges("plan", fan_out, ["refine", "review"])
    builder.add_edge("refine", "review")
    builder.add_edge("review", "learn")
    builder.add_conditional_edges("learn", route)
    builder.add_edge("confirm", END)
    return builder.compile(checkpointer=checkpointer, name="optimize")


graph = build()
