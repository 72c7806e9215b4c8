"""A loop that is left to the reference's own operators, written as the loop of Python that it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Ref
from tools.codegen.ir.loop import Loop, StepNumber
from tools.codegen.ir.sizes import Attribute, Fact, express_by
from tools.codegen.module.library_calls import Caller
from tools.codegen.templates.shared.naming import Names


@dataclass
class LoopText:
    """Writes one loop."""

    loop: Loop
    outside: Callable[[Ref], str]
    """How values around it are named."""
    names: Names
    facts: Sequence[Fact]
    device: str
    attributes: Sequence[Attribute] = ()
    """What the constructor kept."""
    lines: list[str] = field(default_factory=list)
    bound: dict[Ref, str] = field(default_factory=dict)

    def write(self) -> list[str]:
        """Write its lines and return the names of its results."""
        loop = self.loop
        arguments = [self.outside(ref) for ref in loop.args]
        step = self.names.fresh("step")
        caller = _StepCaller(self._inside, self.facts, self.device, step)
        for whole in loop.whole:
            self.bound[Ref(whole.name)] = arguments[whole.place]
        for one in loop.carried:
            self.bound[Ref(one.name)] = name = self.names.fresh(one.name)
            self.lines.append(f"{name} = {arguments[one.place]}")
        lists = [self.names.fresh(f"{left.ref.name}_steps") if left.dim is not None else "" for left in loop.left]
        self.lines += [f"{name} = []" for name in lists if name]
        self.lines.append(f"for {step} in {self._range(arguments)}:")
        inside = [*self._parts(arguments, step), *(self._node(caller, name) for name in loop.body.by_name)]
        inside += [f"{name}.append({self._inside(left.ref)})" for name, left in zip(lists, loop.left, strict=True) if name]
        if loop.carried:
            befores, afters = zip(*((self.bound[Ref(one.name)], self._inside(one.after)) for one in loop.carried), strict=True)
            inside.append(f"{', '.join(befores)} = {', '.join(afters)}")
        self.lines += [f"    {line}" for line in inside]
        return [self._result(name, place) for place, name in enumerate(lists)]

    def _range(self, arguments: Sequence[str]) -> str:
        loop = self.loop
        steps = next((f"{arguments[one.place]}.shape[{one.dim}]" for one in loop.sliced), None)
        steps = steps or express_by(loop.steps, self.facts, self.attributes)
        if steps is None:
            raise LoweringError("the number of a loop's steps cannot be told from the shapes of the inputs")
        return f"reversed(range({steps}))" if loop.backwards else f"range({steps})"

    def _parts(self, arguments: Sequence[str], step: str) -> list[str]:
        lines = []
        for one in self.loop.sliced:
            self.bound[Ref(one.name)] = name = self.names.fresh(one.name)
            lines.append(f"{name} = {arguments[one.place]}.select({one.dim}, {step})")
        return lines

    def _node(self, caller: Caller, name: str) -> str:
        node = self.loop.body.by_name[name]
        text, fresh = caller.call(node), self.names.fresh(node.name)
        for index in range(len(node.outputs)):
            self.bound[Ref(name, index)] = fresh if len(node.outputs) == 1 else f"{fresh}[{index}]"
        return f"{fresh} = {text}"

    def _result(self, name: str, place: int) -> str:
        left = self.loop.left[place]
        if not name:
            carried = next(one for one in self.loop.carried if one.after == left.ref)
            return self.bound[Ref(carried.name)]
        result = self.names.fresh(self.loop.name if place == 0 else f"{self.loop.name}_{place}")
        steps = f"{name}[::-1]" if self.loop.backwards else name
        self.lines.append(f"{result} = torch.stack({steps}, {left.dim})")
        return result

    def _inside(self, ref: Ref) -> str:
        return self.bound[ref]


class _StepCaller(Caller):
    """Writes calls inside of a loop, whose numbers may grow with its step."""

    def __init__(self, names: Callable[[Ref], str], facts: Sequence[Fact], device: str, step: str) -> None:
        super().__init__(names, facts, device)
        self.step = step

    def text(self, arg: object) -> str:
        """Write one argument."""
        if isinstance(arg, StepNumber):
            return f"({arg.first} + {self.step})" if arg.by == 1 else f"({arg.first} + {arg.by} * {self.step})"
        return super().text(arg)
