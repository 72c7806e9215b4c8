"""The tuner of a schedule's numbers.

`space` lists what they span, the cheapest first by the cost model (`tools/cost`); `search` says which to measure next, `cache` what
earlier runs found, and `ranks` how well the model orders them. They run nothing: `graphs/refine/tuning.py` has the points evaluated like
any other candidate.
"""

from tools.codegen.templates.shared.knob import Parameters
from tools.tuning.cache import Tuned, TuningCache, sizes_of, work_of
from tools.tuning.search import Point, Search
from tools.tuning.space import Tunable, tunable, tunable_regions

__all__ = ["Parameters", "Point", "Search", "Tunable", "Tuned", "TuningCache", "sizes_of", "tunable", "tunable_regions", "work_of"]
