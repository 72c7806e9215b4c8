"""The built-in coder's engine, a compiler: traces a reference, partitions it into regions under a schedule, and emits Triton.

`pipeline.py` has its stages in order. `trace` makes the operator graph; `initial_schedule`, `options` and `apply` move a
`Schedule`; `emit` writes the source; `limits` says what is left to the library and why. Trusted processes only: tracing runs
the reference. To widen what can be generated, add a formula to `ir/operators/pointwise_ops.py`, a rule to a family in `lower/` (and the
operator's name to its family in `ir/operators/families.py`), or a template in a folder of its own, registered in `templates/registry.py`.
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
