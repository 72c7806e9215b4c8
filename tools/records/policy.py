"""A precision policy: how wrong a candidate may be, and what PyTorch's libraries may round."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tools.records.base import Record

PolicyName = Literal["default", "exact", "tf32", "fp16", "bf16"]


class Precision(Record):
    """PyTorch's two flags for float32 in NVIDIA's libraries, as reference, baselines and candidates have them."""

    matmul_tf32: bool = False
    """Whether matrix products (cuBLAS) may round their operands to TF32: `torch.backends.cuda.matmul.allow_tf32`."""
    cudnn_tf32: bool = False
    """Whether convolutions and recurrent networks (cuDNN) may: `torch.backends.cudnn.allow_tf32`, which PyTorch sets by itself."""

    def __str__(self) -> str:
        """Read as `TF32 on in cuDNN, off in matrix products`."""
        if self.matmul_tf32 == self.cudnn_tf32:
            return f"TF32 {_word(self.cudnn_tf32)}"
        return f"TF32 {_word(self.cudnn_tf32)} in cuDNN, {_word(self.matmul_tf32)} in matrix products"


def _word(flag: bool) -> str:
    return "on" if flag else "off"


class PrecisionPolicy(Record):
    """How wrong a candidate may be; printed with every figure it produced."""

    name: PolicyName = "exact"
    """The precision the reference is declared to have: `default` is PyTorch's own, `exact` the dtype it computes in, without TF32.

    What was stored before `default` was there, and names none, is `exact`.
    """
    factor: float = Field(default=4.0, gt=0)
    """A candidate's error against float64 may be this many times the reference's own."""
    tolerance: float = Field(default=0.0, ge=0)
    """A relative L2 error that is allowed whatever the reference's own is; 0 allows none beyond it."""
    row_tolerance: float = Field(default=0.0, ge=0)
    """The same for the worst row; 0 takes four times `tolerance`."""
    non_finite: bool = False
    """Inputs with NaN and infinities are tried too: the candidate must answer as the reference does."""

    @property
    def precision(self) -> Precision:
        """What PyTorch's own libraries may round under it."""
        return _PRECISIONS[self.name]

    @property
    def keeps_inputs(self) -> bool:
        """Whether inputs have all digits of their dtype; the other policies round them."""
        return self.name in ("default", "exact")

    def of_operator(self, *, cudnn: bool) -> PrecisionPolicy:
        """Say what it comes to for one product, or for one operator of `cudnn`: `default` is `tf32` for the latter, else `exact`."""
        if self.name != "default":
            return self
        return self.model_copy(update={"name": "tf32" if cudnn and self.precision.cudnn_tf32 else "exact"})

    @property
    def worst_row_tolerance(self) -> float:
        """What the worst row is allowed in any case."""
        return self.row_tolerance or 4 * self.tolerance

    def __str__(self) -> str:
        """Read as `exact`, or `tf32, errors up to 0.001 allowed`."""
        allowed = f", errors up to {self.tolerance:g} allowed" if self.tolerance else ""
        return f"{self.name}{allowed}{', NaN and infinities too' if self.non_finite else ''}"


_PRECISIONS: dict[PolicyName, Precision] = {
    "default": Precision(cudnn_tf32=True),
    "exact": Precision(),
    "tf32": Precision(matmul_tf32=True, cudnn_tf32=True),
    "fp16": Precision(),
    "bf16": Precision(),
}
"""By policy."""

DEFAULT_POLICY = PrecisionPolicy(name="default")
"""What a user gets who names none."""
