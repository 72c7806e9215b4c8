"""Several shapes of one problem: `WORKLOADS` and `WEIGHTS` in its file."""

from collections.abc import Callable

import pytest

from tools.errors import UserError
from tools.records import Problem

Load = Callable[..., Problem]

FILE = """
rows, columns = 64, 32
{more}


def scaled(x):
    return x * 2.0


def example_inputs():
    return (torch.rand(rows, columns),)
"""
TWO = 'WORKLOADS = {"prefill": {}, "decode": {"rows": 1}}\nWEIGHTS = {"decode": 100}'


def test_each_workload_becomes_a_shape_with_its_weight_and_tensors(load: Load) -> None:
    """A size that a workload does not name is as written, and its weight is one."""
    problem = load(FILE.format(more=TWO))
    assert [(one.name, one.weight, one.abi.inputs[0].shape) for one in problem.shapes] == [
        ("prefill", 1.0, (64, 32)),
        ("decode", 100.0, (1, 32)),
    ]
    alone = problem.at(problem.shapes[1])
    assert (alone.abi.inputs[0].shape, alone.sizes, alone.shapes) == ((1, 32), {"rows": 1}, ())


def test_a_file_without_workloads_has_no_shapes(load: Load) -> None:
    """And its `WEIGHTS`, if it has such a name, are its own business."""
    assert load(FILE.format(more="WEIGHTS = [1.0, 2.0]")).shapes == ()


def test_shapes_are_part_of_what_a_problem_is(load: Load) -> None:
    """Other weights make another problem: a run of one says nothing of the other."""
    assert load(FILE.format(more=TWO)).id != load(FILE.format(more=TWO.replace("100", "10"))).id


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ('WORKLOADS = {"decode": {"row": 1}}', "names 'row', which is no integer constant"),
        ('WORKLOADS = {"decode": {"rows": -1}}', "does not run"),
        ('WORKLOADS = [{"rows": 1}]', "no dictionary of plain values"),
        ('WORKLOADS = {"decode": 3}', "does not hold sizes"),
        ('WORKLOADS = {"decode": {"rows": 1}}\nWEIGHTS = {"decode": 0}', "is 0"),
        ('WORKLOADS = {"decode": {"rows": 1}}\nWEIGHTS = {"decod": 2}', "no workload"),
    ],
)
def test_workloads_that_make_no_sense_are_refused(load: Load, more: str, says: str) -> None:
    """With one line that says what is wrong."""
    with pytest.raises(UserError, match=says):
        load(FILE.format(more=more))
