"""Writes the guard of an operator: which tensors its kernel was made and tried for, as Python that a compiler can trace."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tools.guards import Contract
from tools.guards.contract import Size, TensorRule
from tools.models.records import Input, Output, Trace

SPAN = 2
"""A size that may vary may be by this factor smaller or larger than the captured one: beyond, it was tried, and nobody knows whether it is
faster."""


def fits_text(name: str, contract: Contract, trace: Trace) -> str:
    """Write the function that says whether inputs are of the captured kind."""
    inputs = trace.inputs
    rules = {rule.name: rule for rule in contract.inputs if isinstance(rule, TensorRule)}
    lines = [line for each in inputs for line in [*_facts(rules[each.name]), *_layout(each)]]
    captured = [[spec.shape for spec in shape.abi.inputs] for shape in trace.shapes] or [[each.shape for each in inputs]]
    near = dict.fromkeys(_near([rules[each.name] for each in inputs], shapes) for shapes in captured)
    if "" not in near:
        lines.append(next(iter(near)) if len(near) == 1 else f"({' or '.join(f'({one})' for one in near)})")
    return _function(f"fits_{name}", [each.name for each in inputs], lines, f"Whether {name} was made for these inputs.")


def within_text(name: str, contract: Contract, trace: Trace, aside: Collection[str]) -> str:
    """Write the function that says whether a compiler, too, is to use it: not at shapes at which it steps `aside`, by their very sizes."""
    rules = {rule.name: rule for rule in contract.inputs if isinstance(rule, TensorRule)}
    given = [each.name for each in trace.inputs]
    ordered = [rules[each] for each in given]
    sizes = {shape.name: [spec.shape for spec in shape.abi.inputs] for shape in trace.shapes}
    near = dict.fromkeys(_near(ordered, shapes) for shape, shapes in sizes.items() if shape not in aside)
    lines = [f"fits_{name}({', '.join(given)})"]
    lines += [] if "" in near else [f"({' or '.join(f'({one})' for one in near)})"]
    lines += [f"not ({_exactly(ordered, sizes[shape])})" for shape in aside]
    return _function(f"within_{name}", given, lines, f"Whether {name} answers these inputs under torch.compile, too.")


def state_text(name: str, contract: Contract) -> str:
    """Write the function that says whether parameters are of the kind."""
    for rule in contract.parameters:
        # a size of a parameter that varies cannot be asked of a module
        tuple(map(_fixed, rule.sizes))
    lines = [line for rule in contract.parameters for line in [*_facts(rule), f"{rule.name}.is_contiguous()"]]
    return _function(f"state_{name}", [rule.name for rule in contract.parameters], lines, f"Whether {name} was made for these parameters.")


def fake_text(name: str, trace: Trace) -> str:
    """Write the function that makes empty results."""
    made = [_empty(trace.inputs[0].name, output) for output in trace.outputs]
    names = ", ".join(each.name for each in trace.inputs)
    head = f'def fake_{name}({names}):\n    """Make empty tensors like the results of {name}."""\n'
    return f"{head}    return [{', '.join(made)}]\n"


def _empty(first: str, output: Output) -> str:
    sizes = "".join(f"{size}, " for size in output.shape)
    return f"{first}.new_empty(({sizes.rstrip() if len(output.shape) == 1 else sizes.removesuffix(', ')}), dtype=torch.{output.dtype})"


def _function(head: str, names: Sequence[str], lines: Sequence[str], says: str) -> str:
    body = "\n        and ".join(lines) or "True"
    return f'def {head}({", ".join(names)}):\n    """{says}"""\n    return (\n        {body}\n    )\n'


def _near(rules: Sequence[TensorRule], shapes: Sequence[Sequence[int]]) -> str:
    """Write that sizes which may vary are near those of one captured call."""
    return " and ".join(
        f"{max(1, -(-was // SPAN))} <= {rule.name}.shape[{place}] <= {was * SPAN}"
        for rule, shape in zip(rules, shapes, strict=True)
        for place, (size, was) in enumerate(zip(rule.sizes, shape, strict=True))
        if isinstance(size, Size) and size.text.startswith("any")
    )


def _exactly(rules: Sequence[TensorRule], shapes: Sequence[Sequence[int]]) -> str:
    """Write that all sizes are those of one captured call."""
    return " and ".join(
        f"{rule.name}.shape[{place}] == {was}" for rule, shape in zip(rules, shapes, strict=True) for place, was in enumerate(shape)
    )


def _facts(rule: TensorRule) -> list[str]:
    lines = [f"{rule.name}.dtype is torch.{rule.dtype}", f"{rule.name}.dim() == {len(rule.sizes)}"]
    for place, size in enumerate(rule.sizes):
        real = f"{rule.name}.shape[{place}]"
        if isinstance(size, int):
            lines.append(f"{real} == {size}")
        elif size.text.startswith("any"):
            step = int(size.text.split()[-1].replace("any", "1"))
            lines += [f"{real} % {step} == 0"] if step > 1 else []
        else:
            lines.append(f"{real} == {_expression(size.text)}")
    return lines


def _layout(given: Input) -> list[str]:
    """A call whose input lay in order is answered for such inputs alone: another one would cost a copy that nobody timed.

    Of one that lay in rows a kernel takes the steps between these as they come, with offsets of 32 bits.
    """
    name = given.name
    if given.in_rows:
        span = " + ".join(f"({name}.shape[{place}] - 1) * {name}.stride({place})" for place in range(len(given.shape)))
        return [f"{name}.stride(-1) == 1", f"{span} < 2**31"]
    return [f"{name}.is_contiguous()"] if given.contiguous else []


def _expression(text: str) -> str:
    """Write a size in terms of others, which a contract works out from left to right."""
    words = text.split()
    found = words[0]
    for sign, term in zip(words[1::2], words[2::2], strict=True):
        found = f"({found} {sign} {term})"
    return found


def _fixed(size: int | Size) -> int:
    if isinstance(size, Size):
        raise TypeError(f"a parameter's size varies: {size.text}")
    return size
