"""Write the emitted module: its constructor, and the forward that calls host functions and library operators in order."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tools.codegen.ir.graph import OperatorGraph, Ref, find_refs
from tools.codegen.ir.schedule import Schedule
from tools.codegen.ir.sizes import Fact, with_constants
from tools.codegen.module.buffer_updates import written_together
from tools.codegen.module.reference_text import KeptText
from tools.codegen.module.region_lines import RegionLines, Surroundings
from tools.codegen.rewrite.fold_constants import packed_sources
from tools.codegen.rewrite.maker import EXPANDS
from tools.codegen.schedule.buffer_updates import deferrable
from tools.codegen.templates.device.math import HELPERS
from tools.codegen.templates.shared.frame import RegionText
from tools.codegen.templates.shared.naming import Names
from tools.codegen.templates.shared.prepack import CHECK, Packing
from tools.records import Problem, ProblemForm, TensorSpec
from tools.returned import result_text

SPOKEN_OF = frozenset({"F", "collections", "math", "nn", "tl", "torch", "triton", *dir(builtins), *HELPERS})
"""What forward may speak of besides the functions of its file."""


@dataclass
class ForwardText:
    """Writes the body of `forward`."""

    graph: OperatorGraph
    problem: Problem
    taken: frozenset[str]
    packing: Packing = field(default_factory=Packing)
    """Weights that regions want packed in a step of their own."""
    hiding: frozenset[str] = frozenset()
    """Arguments that are given other names, since theirs would hide something else that it speaks of."""
    named_tuples: list[str] = field(default_factory=list)
    """Classes of what it returns, as lines before the module's."""

    def __post_init__(self) -> None:
        """Name the arguments and the parameters."""
        packed = self._make_packed()
        inputs = {name: meta for name, meta in self.graph.inputs.items() if name not in packed}
        keys = {name: self.graph.parameters.get(name) for name in inputs}
        names = Names({*self.taken, *self.graph.arguments})
        self.spared = {name: names.fresh(f"{name}_value") for name in self.graph.arguments if name in self.hiding}
        bound = {Ref(name): self.spared.get(name, name) if key is None else attribute(key, self.problem.form) for name, key in keys.items()}
        sizes = [Fact(f"{bound[Ref(name)]}.shape[{place}]", each) for name, meta in inputs.items() for place, each in enumerate(meta.shape)]
        attributes = [replace(each, text=attribute(each.text, self.problem.form)) for each in self.graph.attributes]
        device = next((bound[Ref(name)] for name in inputs), "")
        facts = with_constants(sizes, self.graph.constants)
        self.inside = RegionLines(self.graph, names, Surroundings(facts, device, attributes), self.packing, bound, packed)

    def _make_packed(self) -> dict[str, str]:
        """Write the statements of the step that makes values of parameters alone, and name these values."""
        packed: dict[str, str] = {}
        if not self.graph.prepacked:
            return packed
        made = {node.name for node in self.graph.prepacked}
        inputs = {name: meta for name, meta in self.graph.inputs.items() if name not in made}
        step = ForwardText(
            replace(self.graph, nodes=(*self.graph.prepacked, *self.graph.nodes), inputs=inputs, prepacked=()), self.problem, self.taken
        )
        for node in self.graph.prepacked:
            step.inside.library(node)
            packed[node.name] = step.inside.bound[Ref(node.name)]
        self.packing.lines += step.inside.lines
        self.packing.values = frozenset(packed.values())
        self.packing.watch(step.inside.bound[ref] for ref in packed_sources(self.graph))
        return packed

    def write(self, schedule: Schedule, generated: Mapping[str, RegionText]) -> list[str]:
        """Write every region in order, what is left to write to buffers, then the return."""
        later, inside = deferrable(self.graph), self.inside
        inside.write(schedule.regions, generated, frozenset(later))
        writes = [(node, inside.stored(node)) for node in self.graph.nodes if node.name in later]
        inside.lines += [line for _, lines in writes for line in lines or ()]
        inside.lines += written_together([node for node, lines in writes if lines is None], inside.use)
        inside.lines.append(f"return {self._result()}")
        return [*self._moved(), *([f"self.{CHECK}()"] if self.packing.packs else []), *inside.lines]

    def _moved(self) -> list[str]:
        """Write how tensors that are plain attributes get to where the arguments are."""
        there = next((self.spared.get(name, name) for name in self.graph.arguments if name in self.graph.inputs), None)
        used = {ref.name for ref in self.graph.returned} | self.graph.users.keys()
        paths = [attribute(self.graph.parameters[name], self.problem.form) for name in sorted(self.graph.plain & used) if there]
        return [f"{path} = {path}.to({there}.device)" for path in paths]

    def _may_repeat(self, ref: Ref) -> bool:
        """Whether a value is a reshaped expansion: of a tensor of one element it is that element again and again, in the same memory."""
        node = self.graph.by_name.get(ref.name)
        source = self.graph.by_name.get(node.args[0].name) if node and node.op == "reshape" and isinstance(node.args[0], Ref) else None
        return source is not None and source.op in EXPANDS

    def _result(self) -> str:
        """Write what forward returns, made as what the reference returns is."""
        structure = self.problem.abi.returns
        if not structure:
            return self._output(self.graph.outputs)
        values = [self._output(ref) for ref in find_refs(self.graph.outputs)]
        text, self.named_tuples = result_text(structure, values, self.inside.names.fresh)
        return text

    def _output(self, tree: object) -> str:
        if isinstance(tree, Ref):
            return self.inside.use(tree) + (".contiguous()" if self._may_repeat(tree) else "")
        if isinstance(tree, tuple):
            return f"({', '.join(self._output(item) for item in tree)}{',' if len(tree) == 1 else ''})"
        if isinstance(tree, list):
            return f"[{', '.join(self._output(item) for item in tree)}]"
        if isinstance(tree, dict):
            return "{" + ", ".join(f"{key!r}: {self._output(item)}" for key, item in tree.items()) + "}"
        return repr(tree)


def attribute(key: str, form: ProblemForm) -> str:
    """Write the path of a parameter: `self.net[0].weight`."""
    text = "self"
    for part in key.split("."):
        if part.isidentifier():
            text = f"{text}.{part}"
        elif form is ProblemForm.KERNELBENCH and part.isdigit():
            text = f"{text}[{part}]"
        else:
            text = f"getattr({text}, {part!r})"
    return text


def class_text(
    problem: Problem,
    graph: OperatorGraph,
    kept: KeptText | None,
    forward: Iterable[str],
    packing: Packing,
    spared: Mapping[str, str] | None = None,
) -> str:
    """Write `ModelNew`; where its forward speaks of something by the name of an argument, that is `spared` in a method of its own."""
    base = kept.base if kept else "nn.Module"
    arguments = ", ".join(["self", *(f"{name}{_annotation(problem, name)}" for name in graph.arguments)])
    lines = [f"class ModelNew({base}):", f'    """{_purpose(problem)}"""', ""]
    if kept and kept.body:
        lines += [kept.body, ""]
    elif problem.form is ProblemForm.EXPORTED and problem.abi.parameters:
        lines += [*_constructor(problem, graph), ""]
    if methods := packing.methods():
        lines += [*(f"    {line}" if line else "" for line in methods), ""]
    lines += [f"    def forward({arguments}):"]
    if spared:
        method = next(name for count in range(99) if not re.search(rf"\b{(name := 'compute' + '_' * count)}\b", problem.source))
        inner = ", ".join(["self", *(f"{spared.get(name, name)}{_annotation(problem, name)}" for name in graph.arguments)])
        lines += [f"        return self.{method}({', '.join(graph.arguments)})", "", f"    def {method}({inner}):"]
    lines += [f"        {line}" for line in forward]
    return "\n".join(lines)


def _purpose(problem: Problem) -> str:
    return f"Takes the place of `{problem.entry}`: same constructor, same parameters, same results."


def _annotation(problem: Problem, name: str) -> str:
    spec = next((each for each in problem.abi.arguments if each.name == name), None)
    return ": torch.Tensor" if isinstance(spec, TensorSpec) else ""


def _constructor(problem: Problem, graph: OperatorGraph) -> list[str]:
    """Register parameters and buffers under the names of the reference's state dict."""
    lines = ["    def __init__(self) -> None:", "        super().__init__()"]
    owners: set[str] = set()
    buffers = {graph.parameters[name] for name in graph.buffers}
    for spec in problem.abi.parameters:
        *path, leaf = spec.name.split(".")
        for depth in range(1, len(path) + 1):
            owner = ".".join(path[:depth])
            if owner not in owners:
                owners.add(owner)
                parent = attribute(".".join(path[: depth - 1]), problem.form) if depth > 1 else "self"
                lines.append(f'        {parent}.add_module("{path[depth - 1]}", nn.Module())')
        holder = attribute(".".join(path), problem.form) if path else "self"
        empty = f"torch.empty({spec.shape}, dtype=torch.{spec.dtype})"
        floating = re.match(r"b?float", spec.dtype)
        if spec.name in buffers or not floating:
            lines.append(f'        {holder}.register_buffer("{leaf}", {empty})')
        else:
            lines.append(f'        {holder}.register_parameter("{leaf}", nn.Parameter({empty}))')
    return lines
