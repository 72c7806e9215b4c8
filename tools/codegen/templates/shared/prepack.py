"""Prepacked weights: what a kernel reads of parameters is written once, and not at every call.

The host function of a region then takes what was packed, and a second function writes it. The emitted module calls the second ones in
`pack_weights`, the step that the evaluator calls and times by itself. `forward` calls it, too, where a weight is new: replaced, moved to
another device, or written in place, as an optimiser and `load_state_dict` do. What is written through `.data` is not noticed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import Ref
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.host_sizes import host_size
from tools.codegen.templates.shared.iteration_space import Space
from tools.codegen.templates.shared.lines import block

WEIGHTS = "weights"
EVERY_CALL, PREPACKED = "every_call", "prepacked"
CHOICES = (EVERY_CALL, PREPACKED)
ARGUMENT = "packed"
"""What a host function calls what it is given."""
STATE, CHECK = "packed_weights", "refresh_weights"
"""What the step keeps on the module, and what does it again where it has to be done."""
VERSIONS = "versions"
"""The helper that tells whether weights have changed."""
METHODS = '''
packed_at = None

def weights_to_pack(self) -> list[torch.Tensor]:
    """List the parameters that kernels read as `pack_weights` writes them."""
    return {weights}

@torch.no_grad()
def pack_weights(self) -> None:
    """Write weights as kernels read them: a step of its own, once for all calls."""
{lines}    self.packed_weights = {packs}
    # held, so that no other weight gets their memory
    self.packed_from = [weight.detach() for weight in self.weights_to_pack()]
    self.packed_at = versions(self.weights_to_pack())

def refresh_weights(self) -> bool:
    """Pack weights that are new: replaced, moved or written in place since; return whether there were any."""
    if self.packed_at == versions(self.weights_to_pack()):
        return False
    self.pack_weights()
    return True
'''
NAMES = ("packed_weights", "packed_from", "packed_at", "weights_to_pack", "pack_weights", "refresh_weights")
"""What the module has more than the reference."""


@dataclass(frozen=True)
class Pack:
    """A function that writes what a host function reads of weights."""

    function: str
    inputs: tuple[Ref, ...]
    """Parameters it takes, in order."""


@dataclass(frozen=True)
class Pass:
    """The host's statement that writes one operand as a kernel reads it."""

    access: Access
    line: str
    made: tuple[str, ...]
    """Variables that it leaves."""

    @property
    def taken(self) -> str:
        """Write the variables as the target of an assignment."""
        return ", ".join(self.made) if len(self.made) > 1 else f"({self.made[0]},)"


def packed(passes: Iterable[Pass], wanted: object) -> tuple[Pass, ...]:
    """Choose the passes that belong into a step of their own: those over fixed parameters, where that is `wanted` of the region."""
    return tuple(each for each in passes if each.access.fixed) if wanted == PREPACKED else ()


def packing_function(name: str, reader: str, passes: Sequence[Pass], space: Space) -> tuple[Pack, list[str]]:
    """Write the function of that step for one region, with the sizes that its statements need."""
    lines: list[str] = []
    for each in passes:
        alone = replace(space, accesses=(each.access,))
        words = set(re.findall(r"\w+", each.line))
        lines += [f"{size} = {host_size(alone, atoms, {})}" for size, atoms in space.used.items() if size in words]
        lines.append(each.line)
    made = ", ".join(variable for each in passes for variable in each.made)
    given = ", ".join(f"{each.access.name}: torch.Tensor" for each in passes)
    function = f"{name}_weights"
    text = [
        f"def {function}({given}) -> list[torch.Tensor]:",
        f'    """Write weights as `{reader}` reads them."""',
        *("    " + line for line in dict.fromkeys(lines)),
        f"    return [{made}]",
    ]
    return Pack(function, tuple(each.access.ref for each in passes)), text


def taken_lines(passes: Sequence[Pass]) -> list[str]:
    """Write how the host function takes what was packed."""
    if not passes:
        return []
    if len(passes) == 1:
        return [f"{passes[0].taken} = {ARGUMENT}"]
    return [f"{', '.join(variable for each in passes for variable in each.made)} = {ARGUMENT}"]


@dataclass
class Packing:
    """What an emitted module packs, as `forward` is written."""

    weights: list[str] = field(default_factory=list)
    """Parameters, as the module names them."""
    packs: list[str] = field(default_factory=list)
    """What is kept: calls of the regions' functions, and values made of parameters alone."""
    lines: list[str] = field(default_factory=list)
    """Statements that make such values."""
    values: frozenset[str] = frozenset()
    """Their names."""

    def add(self, pack: Pack, given: Sequence[str]) -> str:
        """Add a region's pack of what it is given, parameters or `values`, and write what its host function is given."""
        self.watch(name for name in given if name not in self.values)
        self.packs.append("\n".join(block(pack.function, given, "", " " * 8)).lstrip())
        return f"self.{STATE}[{len(self.packs) - 1}]"

    def watch(self, weights: Iterable[str]) -> None:
        """Add parameters whose change asks for the step."""
        self.weights += [weight for weight in dict.fromkeys(weights) if weight not in self.weights]

    def keep(self, value: str) -> str:
        """Keep a value that `lines` make and write how it is read."""
        if value not in self.packs:
            self.packs.append(value)
        return f"self.{STATE}[{self.packs.index(value)}]"

    def methods(self) -> list[str]:
        """Write the step and its check, unindented; nothing where nothing is packed."""
        if not self.packs:
            return []
        lines = "".join(f"    {line}\n" for line in self.lines)
        text = METHODS.format(weights=_listed(self.weights, 8), packs=_listed(self.packs, 8), lines=lines)
        return text.strip("\n").split("\n")


def _listed(items: Sequence[str], indent: int) -> str:
    """Write a list on one line, or one item a line where it is too long."""
    line = f"[{', '.join(items)}]"
    if len(line) <= 90:
        return line
    pad = " " * indent
    return "[\n" + "".join(f"{pad}{item},\n" for item in items) + " " * (indent - 4) + "]"


def refuse_clash(source: str) -> None:
    """Raise LoweringError where a reference has names of its own that the step takes."""
    if found := next((name for name in NAMES if re.search(rf"\b{name}\b", source)), None):
        raise LoweringError(f"the reference has a {found} of its own, so its weights are not packed")
