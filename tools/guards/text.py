"""Write a guard behind a source: what is the same in every file, the contract, and a `forward` that compares one tuple a call."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any

from tools.codegen.ir.sizes import literal
from tools.complex_pairs import NAMES
from tools.guards.contract import Contract, Size, TensorRule, Unfixed, ValueRule

MARK = "# What follows was written by kernelwright: calls that this file was not made for are refused before a kernel runs."
"""The line that a guard begins with."""
SUPPORTED = '__all__ = ["ModelNew"]'
"""What a file offers: its other functions, called by themselves, would not be checked."""
FEW = 4
"""Parameters and buffers up to which each call looks at all of their facts; of more it asks whether they are the same objects."""

BODY = """
import operator

guard = Guard(
    model,
    arguments={arguments},
    parameters={parameters},
    constructor={constructor},
    training={training},{written}
)
construct, compute = model.__init__, model.forward
wants_gradients, rounds = torch.is_grad_enabled, torch.is_autocast_enabled

def admitted(self, seen, inputs):
    '''Look at a call as a whole, and remember how it looks where the file was made for it; else {otherwise}.'''
    if wrong := guard.called(self, inputs):
        {refuse}
    self.guard_held = guard.places(self)
    self.guard_facts = [{fact} for owner, name in self.guard_held]
    self.guard_seen = seen
    return True

def __init__(self, *given, **named):
{first}    construct(self, *given, **named)
    self.guard_arguments = (given, named)

def {forward}({signature}):
    gradients = wants_gradients()
    try:
        seen = {seen}
    except AttributeError as error:
        raise TypeError("This kernel takes tensors as {tensors}.") from error
    if (
        {changed}
    ) and not admitted(self, seen, {given}):
        return {instead}
{laid_out}    return compute({passed})
{called}
model.guard_seen = None
model.__init__, model.forward = __init__, forward
"""
"""The part of a guard that is a problem's own."""

CALLED = """
def forward({signature}):
    return {forward}({passed})
"""
"""What comes between where an input has a name that the guard itself uses."""

MOVED = """
convert, assign = model._apply, model.__setattr__

def _apply(self, *given, **named):
    self.guard_seen = None
    return convert(self, *given, **named)

def __setattr__(self, name, value):
    if isinstance(value, torch.nn.Module):
        self.guard_seen = None
    assign(self, name, value)

model._apply, model.__setattr__ = _apply, __setattr__
"""
"""What makes a module look again where its parameters were converted or another part took one's place."""


def guarded(source: str, contract: Contract, *, reference: str = "") -> str:
    """Put a guard behind a source, in place of one that it has.

    `reference` is the text of a function that makes the reference, which then answers what the file was not made for; without it that is
    an error. Inputs are made contiguous: no source was ever tried with others.
    """
    bare = unguarded(source)
    name = next(name for name in _names() if not re.search(rf"\b{name}\b", bare))
    instead = "a call that it was not made for goes to the reference" if reference else "a call that it was not made for is an error"
    lines = [f"def {name}(model):", f'    """Compare each call of `model` with what the file was made for: {instead}."""']
    lines += _indented(CHECKS, *([REFERRED, reference] if reference else []), _own(contract, refers=bool(reference)))
    lines += _indented(MOVED) if contract.parameters else []
    return f"{bare.rstrip()}\n\n\n{MARK}\n\n{SUPPORTED}\n\n\n" + "\n".join(lines).rstrip() + f"\n\n\n{name}(ModelNew)\n"


def unguarded(source: str) -> str:
    """Take the guard off a source that has one."""
    return source.partition(MARK)[0].rstrip() + "\n" if MARK in source else source


def _names() -> Iterator[str]:
    return (f"guarded{'_' * count}" for count in range(99))


def _indented(*parts: str) -> list[str]:
    return ["    " + line if line else "" for part in parts for line in ("", *part.strip("\n").split("\n"))]


def _own(contract: Contract, *, refers: bool) -> str:
    """Write the part of a guard that is a problem's own."""
    forward, spared = _spared([rule.name for rule in contract.inputs])
    inputs = [replace(rule, name=name) for rule, name in zip(contract.inputs, spared, strict=True)]
    names = [rule.name for rule in inputs]
    written = {name for rule, name in zip(contract.inputs, spared, strict=True) if rule.name in contract.written}
    tensors = [rule.name for rule in inputs if isinstance(rule, TensorRule)]
    # a contiguous view may be conjugate, and is read as it lies in memory
    conjugate = {rule.name: ".resolve_conj()" for rule in inputs if isinstance(rule, TensorRule) and rule.dtype in NAMES}
    copies = [f"    {name} = {name}{conjugate.get(name, '')} if {name}.is_contiguous() else {name}.contiguous()\n" for name in tensors]
    return BODY.format(
        arguments=_table((rule.name, _rule(rule)) for rule in contract.inputs),
        parameters=_table((rule.name, _rule(rule)) for rule in contract.parameters),
        constructor=_literal(contract.constructor),
        training=contract.training,
        written=f"\n    written={contract.written!r}," if contract.written else "",
        otherwise="leave it to the reference" if refers else "raise ValueError",
        refuse="return False" if refers else "guard.refuse(wrong)",
        fact="owner[name]" if _many(contract) else "facts(owner[name])",
        first="" if refers else "    if wrong := guard.constructed(given, named):\n        guard.refuse(wrong)\n",
        forward=forward,
        signature=", ".join(["self", *_parameters(inputs)]),
        seen=_tuple(_looks(replace(contract, inputs=tuple(inputs)), written)),
        tensors=", ".join(rule.name for rule in contract.inputs if isinstance(rule, TensorRule)),
        changed="\n        or ".join([*_changes(contract), *_met_twice(tensors, written)]),
        given=_tuple(names),
        passed=", ".join(["self", *names]),
        instead=f"referred(self, {_tuple(names)}, reference)" if refers else "None",
        laid_out="".join(copies),
        called=""
        if forward == "forward"
        else CALLED.format(
            signature=", ".join(["self", *_parameters(contract.inputs)]),
            forward=forward,
            passed=", ".join(["self", *(rule.name for rule in contract.inputs)]),
        ),
    )


def _spared(names: Sequence[str]) -> tuple[str, list[str]]:
    """Name the function that checks a call, and its inputs, apart from each other and from what its text speaks of."""
    if WORDS.isdisjoint(names):
        return "forward", list(names)
    taken = {*WORDS, *names}

    def free(name: str) -> str:
        while name in taken:
            name += "_"
        taken.add(name)
        return name

    return free("forward"), [free(name) if name in WORDS else name for name in names]


def _parameters(rules: Sequence[TensorRule | ValueRule]) -> list[str]:
    """Write forward's parameters; those at its end that a call may leave out have their value as default."""
    written: list[str] = []
    open_ = True
    for rule in reversed(rules):
        open_ = open_ and isinstance(rule, ValueRule) and rule.optional
        written.append(f"{rule.name}={_literal(rule.value)}" if open_ and isinstance(rule, ValueRule) else rule.name)
    return written[::-1]


def _many(contract: Contract) -> bool:
    return len(contract.parameters) > FEW


def _looks(contract: Contract, written: Collection[str]) -> Iterator[str]:
    """List what is compared at each call."""
    yield "rounds()"
    yield from ["gradients"] if contract.parameters else []
    yield from ["self.training"] if contract.training is not None else []
    for rule in contract.inputs:
        if isinstance(rule, TensorRule):
            yield from (f"{rule.name}.shape", f"{rule.name}.dtype", f"{rule.name}.device", f"gradients and {rule.name}.requires_grad")
            yield from [f"{rule.name}.is_contiguous()"] if rule.name in written else []
        else:
            yield from (f"type({rule.name})", rule.name)


def _changes(contract: Contract) -> Iterator[str]:
    """List what makes a call be looked at as a whole."""
    yield "seen != self.guard_seen"
    if _many(contract):
        yield "not all(map(operator.is_, [owner[name] for owner, name in self.guard_held], self.guard_facts))"
        yield "gradients and any(each.requires_grad for each in self.guard_facts)"
    elif contract.parameters:
        yield "[facts(owner[name]) for owner, name in self.guard_held] != self.guard_facts"


def _met_twice(tensors: Sequence[str], written: Set[str]) -> Iterator[str]:
    """Ask whether a tensor that is written to is given twice."""
    for place, name in enumerate(tensors):
        yield from (f"{name} is {other}" for other in tensors[place + 1 :] if not written.isdisjoint((name, other)))


def _tuple(items: Iterable[str]) -> str:
    found = list(items)
    return f"({', '.join(found)}{',' if len(found) == 1 else ''})"


def _rule(rule: TensorRule | ValueRule) -> str:
    if isinstance(rule, ValueRule):
        return f"({_literal(rule.value)},)"
    return f"(torch.{rule.dtype}, {_literal(rule.sizes)})"


def _literal(value: Any) -> str:
    """Write a value of the contract as Python."""
    match value:
        case Size():
            return f'Size("{value.text}")'
        case Unfixed():
            return "..."
        case tuple():
            return _tuple(map(_literal, value))
        case list():
            return f"[{', '.join(map(_literal, value))}]"
        case float():
            return literal(value)
        case _:
            return repr(value)


def _table(rows: Iterable[tuple[str, str]]) -> str:
    lines = [f'        "{name}": {text},\n' for name, text in rows]
    return "{\n" + "".join(lines) + "    }" if lines else "{}"


SPOKEN_OF = {"all", "any", "each", "facts", "map", "name", "operator", "owner", "reference", "referred", "type"}
WORDS = SPOKEN_OF.union(re.findall(r"[a-zA-Z_]\w*", BODY))
"""What the guard's own names may be, and those that it uses."""
CHECKS = (Path(__file__).with_name("checks.py").read_text()).partition('"""\n')[2]
"""The part of a guard that is the same in every file."""
REFERRED = (Path(__file__).with_name("referred.py").read_text()).partition('"""\n')[2]
"""The part that calls the reference."""
