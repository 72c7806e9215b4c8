"""The tuner of a schedule's numbers, and of those that stand in a written source.

`space` lists what a schedule's span, the cheapest first by the cost model (`tools/cost`); `written` finds a source's, `neighbours` the
points around them; `search` says which to measure next, `cache` what earlier runs found, and `ranks` how well the model orders them. They
run nothing: `graphs/refine/tuning.py` and `sweep.py` have the points evaluated like any other candidate.
"""

from tools.codegen.templates.shared.knob import Parameters
from tools.tuning.cache import Tuned, TuningCache, sizes_of, work_of
from tools.tuning.search import Point, Search
from tools.tuning.space import Tunable, tunable, tunable_regions

__all__ = ["Parameters", "Point", "Search", "Tunable", "Tuned", "TuningCache", "sizes_of", "tunable", "tunable_regions", "work_of"]
