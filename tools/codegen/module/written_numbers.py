"""A kernel that writes a few numbers of the source to the device: copying them there from the host would wait for all that is queued."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tools.codegen.ir.constant_tensors import flat_numbers
from tools.codegen.ir.dtypes import TRITON
from tools.codegen.ir.graph import Node
from tools.codegen.ir.sizes import literal, power_of_two

TEXT = '''
@triton.jit
def {name}_kernel(made_ptr):
    """Numbers that are known beforehand -> made {shape}."""
    place = tl.arange(0, {block})
{lines}
    tl.store(made_ptr + place, number, mask=place < {count})


def {name}(device):
    """Write them on the device: copying them from the host's memory would wait for all that is queued."""
    made = torch.empty({shape}, dtype=torch.{dtype}, device=device)
    {name}_kernel[(1,)](made, num_warps=1)
    return made
'''


def writing_text(node: Node, name: str) -> str:
    """Write a kernel that writes a node's numbers, and its host function, called `name`."""
    out, numbers = node.outputs[0], flat_numbers(node.args[0])
    dtype = "int1" if out.dtype == "bool" else TRITON.get(out.dtype, out.dtype)
    block = max(2, power_of_two(len(numbers)))
    lines = "\n".join("    " + line for line in _lines(numbers, block, dtype))
    return TEXT.format(name=name, lines=lines, block=block, count=len(numbers), shape=out.written, dtype=out.dtype).strip("\n")


def _lines(numbers: Sequence[Any], block: int, dtype: str) -> list[str]:
    """Begin with the number that is there most often, and put the others where they belong."""
    places: dict[str, list[int]] = {}
    for place, number in enumerate(numbers):
        places.setdefault(literal(number) if isinstance(number, float) else repr(number), []).append(place)
    most, *others = sorted(places, key=lambda text: -len(places[text]))
    lines = [f"number = tl.full([{block}], {most}, tl.{dtype})"]
    for text in others:
        tests = [f"(place == {place})" for place in places[text]]
        where = " | ".join(tests) if len(tests) > 1 else tests[0][1:-1]
        lines.append(f"number = tl.where({where}, tl.full([{block}], {text}, tl.{dtype}), number)")
    return lines
