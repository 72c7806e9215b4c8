"""Rows sent to experts, left to the reference's own operators: written as the loop over experts that it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tools.codegen.ir.dispatch import BASE, CHOSEN, Dispatch, OfExpert
from tools.codegen.ir.graph import Node, Ref
from tools.codegen.ir.sizes import Fact
from tools.codegen.module.library_calls import Caller
from tools.codegen.templates.shared.naming import Names


@dataclass
class DispatchText:
    """Writes one loop over experts."""

    node: Dispatch
    outside: Callable[[Ref], str]
    """How values around it are named."""
    names: Names
    facts: Sequence[Fact]
    device: str
    lines: list[str] = field(default_factory=list)
    bound: dict[Ref, str] = field(default_factory=dict)

    def write(self) -> str:
        """Write its lines and return the name of its result."""
        node, chosen = self.node, self.outside(self.node.args[CHOSEN])
        caller = Caller(self.bound.__getitem__, self.facts, self.device)
        result, expert, rows = (self.names.fresh(wish) for wish in (node.name, "expert", "rows"))
        own = {each.name: self._list(each) for each in node.of_expert}
        self.lines.append(f"{result} = {self._base(chosen)}")
        self.lines.append(f"for {expert} in range({node.experts}):")
        number = f"{expert} + {node.first}" if node.first else expert
        inside = [f"{rows} = torch.where({chosen} == {number})"]
        for picked in node.picked:
            by, shape = (rows, f"*{chosen}.shape") if picked.pair else (f"{rows}[0]", f"{chosen}.shape[0]")
            inside.append(self._bind(picked.name, f"{self.outside(node.args[picked.place])}.reshape({shape}, -1)[{by}]"))
        for each in node.of_expert:
            inside.append(self._bind(each.name, f"{own[each.name]}[{expert}]{'.mT' if each.turned else ''}{self._flat(each.name)}"))
        for common in node.common:
            self.bound[Ref(common.name)] = f"{self.outside(node.args[common.place])}{self._flat(common.name)}"
        inside += [self._call(caller, each) for each in node.body.nodes]
        value = self.bound[node.value]
        inside.append(f"{result}.index_add_(0, {rows}[0], {value})" if node.adds else f"{result}[{rows}[0]] = {value}")
        self.lines += [f"    {line}" for line in inside]
        return result

    def _list(self, each: OfExpert) -> str:
        """Name what holds the weights of all experts."""
        texts = [self.outside(self.node.args[place]) for place in each.places]
        if each.is_stacked:
            return texts[0]
        name = self.names.fresh(each.name)
        self.lines += [f"{name} = [", *(f"    {text}," for text in texts), "]"]
        return name

    def _base(self, chosen: str) -> str:
        base, meta = self.node.args[BASE], self.node.outputs[0]
        if base is not None:
            return f"{self.outside(base)}.clone()"
        width = self.node.body.meta(self.node.value).shape[1][0]
        return f"torch.zeros(({chosen}.shape[0], {width}), dtype=torch.{meta.dtype}, device={chosen}.device)"

    def _flat(self, name: str) -> str:
        """Write the shape that the body has of a vector."""
        return ".reshape(-1)" if len(self.node.body.inputs[name].shape) == 1 else ""

    def _bind(self, name: str, text: str) -> str:
        variable = self.bound[Ref(name)] = self.names.fresh(name)
        return f"{variable} = {text}"

    def _call(self, caller: Caller, node: Node) -> str:
        return self._bind(node.name, caller.call(node))
