"""A loop written as the loop of Python that it was: of the reference's own operators, or of kernels that every step launches again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Ref
from tools.codegen.ir.loop import Loop, StepNumber
from tools.codegen.ir.sizes import Attribute, Fact, express_by
from tools.codegen.module.library_calls import Caller
from tools.codegen.templates.shared.naming import Names


class StepLines(Protocol):
    """What one step is written as."""

    bound: dict[Ref, str]
    lines: list[str]

    def use(self, ref: Ref) -> str:
        """Name a value of the step."""


@dataclass
class LoopText:
    """Writes what stands around the steps of one loop: `begin`, then the step's own lines, then `end`."""

    loop: Loop
    outside: Callable[[Ref], str]
    """How values around it are named."""
    names: Names
    facts: Sequence[Fact]
    attributes: Sequence[Attribute] = ()
    """What the constructor kept."""
    lines: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Name the arguments, the step, and lists of what is left of every step."""
        self.arguments = [self.outside(ref) for ref in self.loop.args]
        self.step = self.names.fresh("step")
        self.lists = [self.names.fresh(f"{left.ref.name}_steps") if left.dim is not None else "" for left in self.loop.left]

    def begin(self, inside: StepLines) -> None:
        """Write what goes before the loop, and name what a step is given."""
        loop = self.loop
        for whole in loop.whole:
            inside.bound[Ref(whole.name)] = self.arguments[whole.place]
        for carried in loop.carried:
            inside.bound[Ref(carried.name)] = name = self.names.fresh(carried.name)
            self.lines.append(f"{name} = {self.arguments[carried.place]}")
        self.lines += [f"{name} = []" for name in self.lists if name]
        for one in loop.sliced:
            inside.bound[Ref(one.name)] = name = self.names.fresh(one.name)
            inside.lines.append(f"{name} = {self.arguments[one.place]}.select({one.dim}, {self.step})")

    def end(self, inside: StepLines) -> list[str]:
        """Write the loop around the lines of a step, then its results, and return the names of these."""
        loop, again = self.loop, []
        again += [f"{name}.append({inside.use(left.ref)})" for name, left in zip(self.lists, loop.left, strict=True) if name]
        if loop.carried:
            befores, afters = zip(*((inside.bound[Ref(one.name)], inside.use(one.after)) for one in loop.carried), strict=True)
            again.append(f"{', '.join(befores)} = {', '.join(afters)}")
        steps = self._steps()
        if any(self.lists) and not steps.isdigit():
            # nothing is laid one after the other of no steps
            self.lines.append(f'assert {steps} > 0, "no kernel is made for a loop of no steps"')
        self.lines.append(f"for {self.step} in {f'reversed(range({steps}))' if loop.backwards else f'range({steps})'}:")
        self.lines += [f"    {line}" for line in (*inside.lines, *again)]
        return [self._result(inside, name, place) for place, name in enumerate(self.lists)]

    def _steps(self) -> str:
        loop = self.loop
        steps = next((f"{self.arguments[one.place]}.shape[{one.dim}]" for one in loop.sliced), None)
        steps = steps or express_by(loop.steps, self.facts, self.attributes)
        if steps is None:
            raise LoweringError("the number of a loop's steps cannot be told from the shapes of the inputs")
        return steps

    def _result(self, inside: StepLines, name: str, place: int) -> str:
        left = self.loop.left[place]
        if not name:
            carried = next(one for one in self.loop.carried if one.after == left.ref)
            return inside.bound[Ref(carried.name)]
        result = self.names.fresh(self.loop.name if place == 0 else f"{self.loop.name}_{place}")
        steps = f"{name}[::-1]" if self.loop.backwards else name
        self.lines.append(f"{result} = torch.stack({steps}, {left.dim})")
        return result


class StepCaller(Caller):
    """Writes calls inside of a loop, whose numbers may grow with its step."""

    def __init__(
        self, names: Callable[[Ref], str], facts: Sequence[Fact], device: str, attributes: Sequence[Attribute] = (), step: str = ""
    ) -> None:
        """Take what any caller takes, and what the number of a step is called; nothing outside of loops."""
        super().__init__(names, facts, device, attributes)
        self.step = step

    def text(self, arg: object) -> str:
        """Write one argument."""
        if isinstance(arg, StepNumber):
            return f"({arg.first} + {self.step})" if arg.by == 1 else f"({arg.first} + {arg.by} * {self.step})"
        return super().text(arg)
