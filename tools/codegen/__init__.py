"""The built-in coder's engine: traces a reference, partitions it into regions, holds a schedule that actions change, emits Triton.

`trace` makes the operator graph; `initial_schedule`, `options` and `apply` move a `Schedule`; `emit` writes the source;
`limits` says what is left to the library and why. Trusted processes only: tracing runs the reference. To widen what can be
generated, add a formula to `pointwise_ops.py`, a rule to `lower_rows.py` or `lower_products.py`, or a template beside the
others with its parameters in `tuning.py`.
"""

from tools.codegen.ir.expr import LoweringError
from tools.codegen.ir.graph import OperatorGraph
from tools.codegen.ir.schedule import Region, Schedule
from tools.codegen.module.link import Emission
from tools.codegen.pipeline import emit, trace
from tools.codegen.schedule.apply import IllegalAction, apply
from tools.codegen.schedule.limits import Limit, limits
from tools.codegen.schedule.options import options
from tools.codegen.schedule.partition import initial_schedule

__all__ = [
    "Emission", "IllegalAction", "Limit", "LoweringError", "OperatorGraph", "Region", "Schedule", "apply", "emit", "initial_schedule",
    "limits", "options", "trace",
]  # fmt: skip
