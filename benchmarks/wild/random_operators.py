"""Writes operators that are made at random into a folder: what a generator gets wrong, it gets wrong where nobody thought of it.

Usage: python -m benchmarks.wild.random_operators FOLDER [--count 200] [--seed 0]

Each is a function of one to three tensors, two to eight operators long: pointwise operators, reductions, scans, views, products, sorts, and
what moves elements. Half of them have one size for all dimensions: two that are as long as each other are easily taken for one.
`python -m benchmarks.wild.run OUT.jsonl --suite FOLDER` takes them through the built-in coder. Where what is sorted is near a tie, a kernel
that is said to be wrong may not be; all else is a defect.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path
from typing import Any

import torch

SIZES = {"N": 24, "M": 17, "K": 6}
MOST_ELEMENTS = 40_000
MOST_DIMENSIONS = 5
TRIES = 60
"""Operators that are tried for one file: many do not fit what they are given."""

OF_ONE = (
    "torch.sigmoid({a})", "torch.tanh({a})", "torch.exp(-{a}.abs())", "{a}.relu()", "{a}.square()", "{a}.clamp(-0.5, 0.7)",
    "F.softplus({a})", "torch.log1p({a}.abs())", "{a}.masked_fill({a} < 0, 0.5)", "{a}.mean()", "{a}.sum()", "{a}.flatten()",
    "{a}.flatten(0, 1)", "{a}.unsqueeze(0)", "{a}.movedim(0, -1)", "{a}[..., ::2]", "{a}.sum((0, 1))", "{a}.mean((-2, -1))",
    "{a}.reshape(-1, {a}.shape[-1])", "F.layer_norm({a}, {a}.shape[-1:])", "torch.diagonal({a}, 0, -2, -1)", "torch.tril({a})",
    "F.pad({a}, (1, 1))",
)  # fmt: skip
OF_TWO = (
    "{a} + {b}", "{a} * {b}", "{a} - {b}", "{a} / (1.0 + {b}.abs())", "torch.where({a} > 0, {a}, {b})", "torch.maximum({a}, {b})",
    "({a} > {b}).to({a})", "{a} @ {b}", "{a} @ {b}.transpose(-1, -2)", "torch.outer({a}, {b})",
    'torch.einsum("ij,kj->ik", {a}, {b})', 'torch.einsum("ij,jk->ki", {a}, {b})', "torch.cdist({a}, {b})",
)  # fmt: skip
ALONG_ONE = (
    "{a}.sum({d}{keep})", "{a}.mean({d}{keep})", "{a}.amax({d}{keep})", "{a}.amin({d}{keep})", "{a}.var({d}{keep})", "{a}.std({d}{keep})",
    "{a}.norm(dim={d}{keep})", "{a}.argmax({d}{keep})", "torch.logsumexp({a}, {d}{keep})", "torch.softmax({a}, {d})",
    "torch.cumsum({a}, {d})", "{a}.cummax({d})[0]", "{a}.transpose({d}, {e})", "{a}.unsqueeze({d})", "{a}.flip({d})",
    "torch.roll({a}, 1, {d})", "{a}.chunk(2, {d})[0]", "{a}.narrow({d}, 1, 4)", "{a}.select({d}, -1)", "{a}.unfold({d}, 3, 2)",
    "{a}.repeat_interleave(2, {d})", "{a}.index_select({d}, torch.arange(3, device={a}.device))", "F.normalize({a}, dim={d})",
    "torch.take_along_dim({a}, {a}.argsort({d}), {d})",
)  # fmt: skip
ALONG_TWO = (
    "torch.cat([{a}, {b}], {d})", "torch.stack([{a}, {b}], {d})", "F.cosine_similarity({a}, {b}, {d})",
    "{a}.gather({d}, {b}.argmax({d}, keepdim=True))",
)  # fmt: skip
FORMS = (*OF_ONE, *OF_TWO, *ALONG_ONE, *ALONG_TWO)


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=200, help="files (default: 200)")
    parser.add_argument("--seed", type=int, default=0, help="of the first file; the others follow (default: 0)")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for seed in range(given.seed, given.seed + given.count):
        (given.folder / f"random_{seed:05}.py").write_text(operator_text(seed))
    print(f"{given.count} operators in {given.folder}")


def operator_text(seed: int) -> str:
    """Write one operator file; the same one for the same seed."""
    return _Program(random.Random(seed)).text()


class _Program:
    """A function that is made one operator after the other, each run on small tensors as it is added."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        names = ["N"] if chance.random() < 0.5 else list(SIZES)[: chance.choice((2, 3))]
        self.sizes = {name: SIZES[name] for name in names}
        first = chance.choices(names, k=chance.choice((2, 2, 3)))
        # later tensors broadcast against the first
        shapes = [first, *(first[chance.randrange(len(first)) :] for _ in range(chance.choice((0, 1, 1, 2))))]
        self.inputs = {f"x{place}": shape for place, shape in enumerate(shapes)}
        maker = torch.Generator().manual_seed(chance.randrange(2**31))
        self.values = {name: torch.randn([self.sizes[size] for size in shape], generator=maker) for name, shape in self.inputs.items()}
        self.lines: dict[str, str] = {}

    def text(self) -> str:
        """Grow it to its length, and write the file."""
        length = self.chance.randrange(2, 9)
        for _ in range(TRIES):
            if len(self.lines) < length:
                self._grow()
        made = list(self.lines)
        # without any operator that fitted it gives back what it is given
        results = [made[-1], *self.chance.sample(made[:-1], int(len(made) > 2 and self.chance.random() < 0.3))] if made else ["x0 + 1"]
        drawn = ", ".join(f"torch.randn({', '.join(shape)})" for shape in self.inputs.values())
        return "\n".join([
            "import torch",
            "import torch.nn.functional as F",
            "",
            *(f"{name} = {size}" for name, size in self.sizes.items()),
            "",
            "",
            f"def sample({', '.join(self.inputs)}):",
            *(f"    {name} = {call}" for name, call in self.lines.items()),
            f"    return {', '.join(results)}",
            "",
            "",
            "def example_inputs():",
            f"    return [{drawn}]",
            "",
        ])  # fmt: skip

    def _grow(self) -> None:
        """Add an operator, if what was chosen fits."""
        names = list(self.values)
        one, two = self.chance.choice(names[-4:]), self.chance.choice(names)
        rank = self.values[one].dim()
        dims = [self.chance.randrange(-rank, rank) if rank else 0 for _ in range(2)]
        keep = self.chance.choice(("", ", keepdim=True"))
        call = self.chance.choice(FORMS).format(a=one, b=two, d=dims[0], e=dims[1], keep=keep)
        try:
            value: Any = eval(call, {"torch": torch, "F": torch.nn.functional}, self.values)
        except (RuntimeError, IndexError, TypeError, ValueError):
            return
        if 0 < value.numel() <= MOST_ELEMENTS and value.dim() <= MOST_DIMENSIONS and bool(value.double().isfinite().all()):
            name = f"y{len(self.lines)}"
            self.values[name], self.lines[name] = value, call


if __name__ == "__main__":
    main()
