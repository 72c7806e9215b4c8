"""A problem: what is to be made faster, and everything an evaluation must know of it."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Literal

from pydantic import Field

from tools.records.base import Record, content_hash
from tools.records.policy import PrecisionPolicy

ITEM_BYTES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "int64": 8, "int32": 4, "int16": 2, "int8": 1, "uint8": 1, "bool": 1, "complex64": 8,
}  # fmt: skip
"""Bytes an element takes, by torch's dtype name; the dtypes an ABI may hold."""

FLOATS = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "complex64")
"""Those of them that are floats, or pairs of floats."""

STATISTICS = ("running_mean", "running_var", "num_batches_tracked")
"""What PyTorch's norms keep in training: their outputs do not depend on it, and no candidate is judged by it."""

Scalar = bool | int | float | str | None


def is_statistic(key: str) -> bool:
    """Whether a state-dict key names such a buffer."""
    return key.rpartition(".")[2] in STATISTICS


class TensorSpec(Record):
    """One tensor of the ABI: contiguous, at a fixed place in a fixed order."""

    kind: Literal["tensor"] = "tensor"
    name: str
    """Argument name, state-dict key, or `output0`, `output1`, …"""
    shape: tuple[int, ...]
    dtype: str
    """A key of `ITEM_BYTES`."""
    dynamic: bool = True
    """True where contents change from call to call (arguments, and parameters where the problem says so); False where they stay."""

    @property
    def numel(self) -> int:
        """Elements."""
        return math.prod(self.shape)

    @property
    def is_float(self) -> bool:
        """Whether it is judged by distance; integers and booleans must be exact."""
        return self.dtype in FLOATS

    @property
    def nbytes(self) -> int:
        """Bytes of the contiguous tensor."""
        return self.numel * ITEM_BYTES[self.dtype]


class ScalarSpec(Record):
    """A non-tensor argument of the reference: part of the problem, the same in every call."""

    kind: Literal["scalar"] = "scalar"
    name: str
    value: Scalar
    optional: bool = False
    """Whether a call may leave it out: the value is the reference's own default. Known of modules given in Python alone."""


class ABI(Record):
    """What crosses the border between the evaluator and a candidate, and nothing else does."""

    arguments: tuple[TensorSpec | ScalarSpec, ...]
    """Positional arguments of the forward call, in order."""
    parameters: tuple[TensorSpec, ...] = ()
    """Parameters and buffers by state-dict key, in the reference's order; empty for a plain function."""
    outputs: tuple[TensorSpec, ...]
    """Outputs, flattened in order; behind them what the call leaves in each argument and each buffer that it writes to."""
    written: tuple[str, ...] = ()
    """Names of the arguments that forward writes to, in order."""
    updated: tuple[str, ...] = ()
    """Buffers and parameters that forward changes, in order; running statistics of PyTorch's norms, which nobody judges, are left out."""
    aliases: tuple[int, ...] = ()
    """Places among the outputs of those that share memory with an argument that forward writes to: that argument itself, or views of it."""
    returns: str = ""
    """How they lie in what forward returns, in the words of `tools/returned.py`; empty in older records: not checked there."""
    init: str = "[]"
    """Positional arguments of the module's constructor as a Python literal (`ast.literal_eval` reads it)."""
    training: bool = False
    """The reference module's own mode: a candidate is put into the same."""

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """The tensor arguments."""
        return tuple(a for a in self.arguments if isinstance(a, TensorSpec))

    @property
    def returned(self) -> tuple[TensorSpec, ...]:
        """The outputs that forward returns."""
        return self.outputs[: len(self.outputs) - len(self.written) - len(self.updated)]

    @property
    def written_places(self) -> tuple[int, ...]:
        """Places among the inputs of those that forward writes to."""
        return tuple(place for place, spec in enumerate(self.inputs) if spec.name in self.written)

    @property
    def updated_places(self) -> tuple[int, ...]:
        """Places among the parameters of those that forward changes."""
        return tuple(place for place, spec in enumerate(self.parameters) if spec.name in self.updated)

    @property
    def nbytes(self) -> int:
        """Bytes of every tensor once."""
        return sum(t.nbytes for t in (*self.inputs, *self.parameters, *self.outputs))

    @property
    def compulsory_bytes(self) -> int:
        """Bytes that any implementation must move: every tensor once (floor of the roofline), but for what may be written in part."""
        return self.nbytes - 2 * sum(spec.nbytes for spec in self.outputs[len(self.returned) :])


class OperatorFamily(StrEnum):
    """What kind of work an operator does; typed filter of the knowledge base."""

    POINTWISE = "pointwise"
    REDUCTION = "reduction"
    SOFTMAX = "softmax"
    NORMALISATION = "normalisation"
    MATMUL = "matmul"
    CONVOLUTION = "convolution"
    POOLING = "pooling"
    SCAN = "scan"
    ATTENTION = "attention"
    LOSS = "loss"
    RECURRENT = "recurrent"
    INDEXING = "indexing"
    OTHER = "other"


class Work(Record):
    """What one call of the reference does, counted while it ran once on this problem's sizes."""

    operators: tuple[str, ...]
    """ATen operators in order of execution, views left out, e.g. `aten.softmax.int`."""
    families: tuple[OperatorFamily, ...]
    """Families of those operators, without repeats, heaviest first."""
    matmul_flops: int
    """Floating-point operations of products, convolutions and attention (a multiply-add counts as 2)."""
    pointwise_flops: int
    """Elements touched by every other operator, one operation each: a lower bound."""
    eager_bytes: int
    """Bytes eager execution moves when each operator reads its inputs and writes its outputs once."""
    matmul_flops_by_dtype: dict[str, int] = Field(default_factory=dict)
    """The same by the widest floating dtype of the operands; empty in records from before it was counted."""
    recurrent_steps: int = 0
    """Steps of recurrent layers, each of which waits for the one before; of all layers and directions together."""


class ProblemForm(StrEnum):
    """How the reference is written."""

    KERNELBENCH = "kernelbench"
    """`Model`, `get_inputs()` and `get_init_inputs()`."""
    FUNCTION = "function"
    """One public function and `example_inputs()`."""
    EXPORTED = "exported"
    """An nn.Module given in Python, kept as a torch.export archive."""


class ProblemShape(Record):
    """Sizes at which a kernel is used, and how often: a problem may name several, and one kernel is to serve all of them."""

    name: str
    weight: float = Field(default=1.0, gt=0)
    """How often it counts."""
    sizes: dict[str, int]
    """Constants that it overrides, as `Problem.sizes`."""
    abi: ABI
    work: Work


class Problem(Record):
    """A PyTorch reference, how to make its inputs, its ABI and its precision policy."""

    name: str
    """Short, of `[a-z0-9_]`, from the file or class name."""
    form: ProblemForm
    entry: str
    """Name of the reference class or function in `source`."""
    source: str
    """The user's whole file, or the base64 torch.export archive for `EXPORTED`."""
    sizes: dict[str, int] = Field(default_factory=dict)
    """Module-level integer constants of `source` that this variant overrides; empty for the problem as written."""
    abi: ABI
    work: Work
    policy: PrecisionPolicy = PrecisionPolicy()
    shapes: tuple[ProblemShape, ...] = ()
    """Where a kernel is judged and timed, if not at the sizes as written alone; `source` names them, so they are in its id."""

    def at(self, shape: ProblemShape) -> Problem:
        """Give the problem at one of its shapes alone."""
        return self.model_copy(update={"sizes": {**self.sizes, **shape.sizes}, "abi": shape.abi, "work": shape.work, "shapes": ()})

    @property
    def id(self) -> str:
        """Content hash of what defines the problem."""
        sizes = ",".join(f"{k}={v}" for k, v in sorted(self.sizes.items()))
        changing = ("weights change",) if any(spec.dynamic for spec in self.abi.parameters) else ()
        return content_hash(self.form, self.entry, self.source, sizes, self.policy.model_dump_json(), *changing)
