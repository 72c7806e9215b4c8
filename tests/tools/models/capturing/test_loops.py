"""Loops over time in a module's forward: its file has them as loops, with the number of steps as a constant where that follows."""

# ruff: noqa: D102 - what a forward does, its class says

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from tools.models.capturing.capture import capture
from tools.models.capturing.cutting import looped
from tools.models.capturing.generic import as_given
from tools.models.capturing.own_time import with_sizes_told
from tools.models.capturing.problem_text import ProblemText
from tools.models.forward.steps import Cut, Place, Sized
from tools.models.loading import Workload
from tools.models.records import Capture, Group, Trace
from tools.problems.counting import Counter

STEPS = 20


class Decaying(nn.Module):
    """A running mean, the state of each step in a list that begins with another."""

    def __init__(self) -> None:
        super().__init__()
        self.rate = nn.Parameter(torch.rand(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros_like(x[:, 0])
        found = [state]
        for step in range(x.shape[1]):
            state = (state * self.rate + x[:, step]).tanh() * (1.0 - self.rate) + x[:, step]
            found.append(state)
        return torch.stack(found, 1).reshape(x.shape[0], -1)


class Backwards(nn.Module):
    """From the last step to the first, whose results stand in the order of time."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.ones_like(x[:, 0])
        found = []
        for step in range(x.shape[1] - 1, -1, -1):
            state = (state * 0.5 + x[:, step]).sigmoid() * x[:, step]
            found.append(state)
        return torch.stack(found[::-1], 1)


class Unbound(nn.Module):
    """Takes a sequence apart, begins with its first part, and gives the last state, too."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        parts = x.unbind(1)
        state, found = parts[0].exp(), []
        for part in parts[1:]:
            state = (state * 0.5 + part).tanh() * part + part.cos()
            found.append(state)
        return torch.cat(found, 1), state


class Stacked(nn.Module):
    """Two layers of loops, the second from the last step to the first, which read lists of what was before."""

    def __init__(self) -> None:
        super().__init__()
        self.there, self.back = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        given = [x[:, step] for step in range(x.shape[1])]
        for layer in (self.there, self.back):
            state = torch.zeros_like(given[0])
            found = []
            for part in given:
                state = torch.tanh(layer(state) + part) * 0.5 + part
                found.append(state)
            given = found[::-1]
        return torch.stack(given, 1)


class Writing(nn.Module):
    """Writes each step's result to its place in a tensor."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state, found = torch.zeros_like(x[:, 0]), torch.empty_like(x)
        for step in range(x.shape[1]):
            state = (state * 0.5 + x[:, step]).tanh()
            found[:, step] = state
        return found


class Unlike(nn.Module):
    """Does more at each step, by a rule that is none of a loop."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = torch.zeros_like(x[:, 0])
        for step in range(x.shape[1]):
            state = (state + x[:, step]) * (step * step) + 1.0 / (step + 1)
        return state


def counted(module: nn.Module, *given: torch.Tensor) -> list[str]:
    """Count the operators of a call."""
    with torch.no_grad(), Counter() as counter:
        module(*given)
    return counter.operators


@pytest.mark.parametrize("kind", [Decaying, Backwards, Unbound, Stacked, Writing])
def test_a_loop_is_written_as_one_of_any_number_of_steps(kind: Any) -> None:
    """The file computes what the module does, at the captured number of steps and at another."""
    module, given = kind().eval(), torch.randn(2, STEPS, 4)
    found = looped(module, (given,), {}, counted(module, given))
    assert found is not None
    assert found.once < 10
    text = ProblemText(module, (given,), {}, "Looped", found.cut)
    assert f"steps0 = {STEPS}" in text.source
    assert "in range(steps0" in text.source
    assert text.held(0) == (1,)
    assert as_given(text, module, [given], module(given))
    short = torch.randn(3, 7, 4)
    assert as_given(text, module, [short], module(short), 7)


def test_several_inputs_are_cut_together() -> None:
    """A second sequence is as long as the first, and no other size that is equal by chance is cut."""

    class Gated(nn.Module):
        def forward(self, x: torch.Tensor, gates: torch.Tensor) -> torch.Tensor:
            state = torch.zeros_like(x[:, 0])
            for step in range(x.shape[1]):
                state = state * gates[:, step].sigmoid() + x[:, step].tanh()
            return state

    given = (torch.randn(2, STEPS, STEPS), torch.randn(2, STEPS, STEPS))
    found = looped(Gated(), given, {}, counted(Gated(), *given))
    assert found is not None
    assert found.cut == Cut(STEPS, (Place(0, 1), Place(1, 1)), Sized(1, 0))


def test_chunks_of_steps_are_counted() -> None:
    """A loop over parts of a sequence has as many steps as there are parts."""

    class Chunked(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            state, found = torch.zeros_like(x[:, 0]), []
            for part in x.split(8, dim=1):
                state = (state * 0.5 + part.mean(1)).tanh()
                found.append(state[:, None] + part.cumsum(1))
            return torch.cat(found, 1)

    module, given = Chunked(), torch.randn(2, 8 * 16, 4)
    found = looped(module, (given,), {}, counted(module, given))
    assert found is not None
    assert found.cut == Cut(16, (Place(0, 1),), Sized(8, 0))
    text = ProblemText(module, (given,), {}, "Chunked", found.cut)
    assert as_given(text, module, [given], module(given))
    assert "8 * steps0, size1))" in text.source


def test_steps_that_differ_are_written_out() -> None:
    """One line for each operator, as before."""
    module, given = Unlike().eval(), torch.randn(2, 8, 4)
    text = ProblemText(module, (given,), {}, "Unlike")
    assert "range(" not in text.source
    assert as_given(text, module, [given], module(given))


def test_a_stack_of_layers_is_no_loop() -> None:
    """Its operators repeat, too, but no input says how often, and each layer is a module."""
    stack = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(12))).eval()
    given = torch.randn(12, 4)
    assert looped(stack, (given,), {}, counted(stack, given)) is None


def test_a_loop_is_an_operator_however_long_it_is() -> None:
    """A capture counts its operators once; the kernel is for its number of steps alone, its other sizes stay free."""
    model = nn.Sequential(Decaying(), nn.Linear(4 * 61, 4)).eval()
    groups = {group.title: group for group in capture(model, [Workload("one", (torch.randn(2, 60, 4),), {}, 1.0)]).groups}
    trace = groups["Decaying"].trace
    assert isinstance(trace, Trace)
    assert "for step in range(steps0)" in trace.source
    assert "size0 = 2" in trace.source
    assert trace.inputs[0].held == (1,)
    assert trace.outputs[0].shape == ("x.shape[0]", "4 * 60 + 4")


def test_what_a_forward_leaves_in_its_module_is_state() -> None:
    """A later call may begin with it, so that a kernel cannot stand for the module, although this call's result never differs."""

    class Leaving(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.last = x[:, -1].tanh()
            return x.sigmoid() * 2.0

    [group] = capture(Leaving().eval(), [Workload("one", (torch.randn(2, 4),), {}, 1.0)]).groups
    assert group.reason == "it keeps state between calls"


def test_numbers_that_follow_from_free_sizes_are_written() -> None:
    """Fractions and signs of them, as scales have them."""

    class Scaled(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * x.shape[0] ** -0.5 + torch.ones_like(x) * -x.shape[0]

    module = Scaled().eval()
    text = ProblemText(module, (torch.randn(6, 4),), {}, "Scaled")
    assert "size0" in text.source
    other = torch.randn(9, 4)
    assert as_given(text, module, [other], module(other))


def test_what_is_too_large_and_slow_by_itself_says_so() -> None:
    """Time of modules inside is not its own; what has next to none stays without a word."""

    def group(name: str, path: str, share: float, operators: int) -> Group:
        return Group(name=name, title=name, paths=(path,), config="", calls={"one": 1}, us=1.0, share=share, operators=operators)

    groups = (group("model", "", 1.0, 900), group("slow", "a", 0.6, 690), group("outer", "b", 0.4, 100), group("inner", "b.0.c", 0.38, 9))
    made = Capture(title="M", clock="", us={"one": 1.0}, weights={"one": 1.0}, modules=4, groups=groups)
    reasons = {one.name: one.reason for one in with_sizes_told(made, 80).groups}
    assert reasons == {"model": "", "slow": "its call takes 690 operators, at most 80 become one (--largest)", "outer": "", "inner": ""}


def test_loops_over_lists_are_traced_as_loops() -> None:
    """What one loop lists and the next one reads is a tensor in the file, and so is what was taken apart."""

    class Twice(Stacked):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            given: Any = x.unbind(1)
            for layer in (self.there, self.back):
                state, found = torch.zeros_like(given[0]), []
                for part in given:
                    state = torch.tanh(layer(state) + part) * 0.5 + part
                    found.append(state)
                given = found
            return torch.stack(given, 1)

    module, given = Twice().eval(), torch.randn(2, STEPS, 4)
    found = looped(module, (given,), {}, counted(module, given))
    assert found is not None
    text = ProblemText(module, (given,), {}, "Twice", found.cut)
    assert as_given(text, module, [given], module(given))
    assert "unbind" not in text.source
    assert text.source.count("[step") == 0
    assert text.source.count("in range(steps0)") == 2
