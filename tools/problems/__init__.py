"""Problems: from a user's file or module to a record, and back to the executable reference.

`load_problem` and `problem_from_module` make a `Problem`; `open_problem` makes it executable again, in TRUSTED processes
only (oracle, baseline, tracer); `small_variants` derives small, odd sizes of it. Importing this package does not import
torch: modules that need it are imported inside the functions that run references.
"""

from tools.problems.constants import takes_views
from tools.problems.load import load_problem, problem_from_module, problem_notes, reload_problem, with_changing_weights
from tools.problems.opening import Reference, open_problem
from tools.problems.variants import describe_sizes, small_variants

__all__ = [
    "Reference",
    "describe_sizes",
    "load_problem",
    "open_problem",
    "problem_from_module",
    "problem_notes",
    "reload_problem",
    "small_variants",
    "takes_views",
    "with_changing_weights",
]
