"""Loops over experts are recognised however they pick rows, and left alone where a step does more than go row by row."""

from __future__ import annotations

import pytest

from tests.support.breadth import unlike
from tests.tools.codegen.dispatch_samples import ASKS, FORMS, PLAIN, REFUSED
from tests.tools.codegen.harness import problem_of, traced_at_all_sizes
from tools.codegen.ir.dispatch import BASE, CHOSEN, Dispatch
from tools.codegen.trace.tracing import MOST, MOST_OF_EXPERTS, WRITES_ROWS

ALIKE = {"orders rows", "asks len(row) < 100", "asks row.size(0) > 3", "asks row.shape[0] != 1"}
"""What is refused for the reason for which another one is, in the same words: tried by `make test-all`."""
LEFT_ALONE = unlike(REFUSED, ALIKE)


def few(source: str) -> str:
    """Have three experts instead of five: a trace takes as long as there are operators."""
    return source.replace("EXPERTS = 5", "EXPERTS = 3")


@pytest.mark.parametrize("name", unlike(FORMS, {"viewed"}))
def test_a_loop_over_experts_is_one_operator(name: str) -> None:
    """A loop that sends rows to experts is one operator of the graph, and nothing of its steps is left beside it."""
    graph = traced_at_all_sizes(FORMS[name], name)[1]
    assert graph.blocked == ()
    (node,) = (node for node in graph.nodes if isinstance(node, Dispatch))
    assert node.experts == 5
    assert graph.meta(node.args[CHOSEN]).dtype == "int64"
    assert not {"index", "index_add", "index_put", "one_hot", "eq", "nonzero"} & {each.op for each in graph.nodes}


def test_its_weights_are_those_of_each_expert_in_order() -> None:
    """Weights of the same place in every expert are one operand, the first expert's first."""
    graph = traced_at_all_sizes(FORMS["plain"], "plain")[1]
    (node,) = (node for node in graph.nodes if isinstance(node, Dispatch))
    keys = [[graph.parameters[node.args[place].name] for place in own.places] for own in node.of_expert]
    assert keys == [[f"experts.{index}.{which}.weight" for index in range(5)] for which in ("gate", "up", "down")]
    assert node.args[BASE] is None


def test_what_rows_are_written_over_is_an_operand() -> None:
    """Where results take the place of rows of another tensor, that one is read."""
    (node,) = (node for node in traced_at_all_sizes(FORMS["switch"], "switch")[1].nodes if isinstance(node, Dispatch))
    assert node.args[BASE] is not None
    assert not node.adds


@pytest.mark.parametrize("what", LEFT_ALONE)
def test_a_step_that_does_more_is_left_alone(what: str) -> None:
    """A step whose rows meet, whose experts differ, or that is asked for by something else gives no operator."""
    graph = traced_at_all_sizes(few(REFUSED[what]), "refused")[1]
    assert graph.blocked
    assert not any(isinstance(node, Dispatch) for node in graph.nodes)


@pytest.mark.parametrize("asks", unlike(ASKS, {"row.shape[0] > 0", "0 < row.numel()"}))
def test_it_may_ask_whether_there_are_any_rows(asks: str) -> None:
    """A step that is left out where there are no rows is one of a loop over experts, however it asks."""
    graph = traced_at_all_sizes(few(PLAIN.replace("if len(row)", f"if {asks}")), "asks")[1]
    assert any(isinstance(node, Dispatch) for node in graph.nodes)


@pytest.mark.parametrize("what", [what for what in LEFT_ALONE if "row" in what and what.startswith("asks")])
def test_how_many_rows_there_are_is_refused_by_name(what: str) -> None:
    """A step that depends on more than there being any rows is told as that."""
    (reason,) = traced_at_all_sizes(few(REFUSED[what]), "refused")[1].blocked
    assert "not only" in reason
    assert "there are any" in reason


@pytest.mark.parametrize("experts", [3, 4])
def test_a_loop_that_leaves_out_experts_of_one_row_is_no_loop_over_the_others(experts: int) -> None:
    """Whatever experts there are, those whose counts are answered alike are not one after the other."""
    graph = traced_at_all_sizes(REFUSED["asks counts[index] > 1"].replace("EXPERTS = 5", f"EXPERTS = {experts}"), "refused")[1]
    assert graph.blocked


def test_a_loop_over_many_experts_is_within_the_limit_of_traced_operators() -> None:
    """Steps of experts are traced sooner than other operators: 256 experts of a dozen operators each, at three sizes, are few enough."""
    problem = problem_of(PLAIN, "plain")
    assert sum(name.startswith(WRITES_ROWS) for name in problem.work.operators) == 5
    assert MOST < 256 * 13 * 3 < MOST_OF_EXPERTS
