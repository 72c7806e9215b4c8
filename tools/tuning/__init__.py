"""The tuner of a schedule's numbers, and the cost model's choices of whole schedules.

`space` lists what they span, `settings` ranks those of one region, `shapes` says how long the cost model expects each to take,
`search` which to measure next, and `cache` what earlier runs found. `modelled` names whole schedules to begin with, over the
`structures` that fusions reach, compared with what `library` expects of the library's own calls.

They run nothing: `graphs/refine/tuning.py` has the points evaluated like any other candidate. A template whose launches `shapes`
does not describe is not tuned; describe it there and name it in `MODELLED`.
"""

from tools.codegen.templates.shared.knob import Parameters
from tools.tuning.cache import Tuned, TuningCache, sizes_of, work_of
from tools.tuning.search import Point, Search
from tools.tuning.space import Tunable, tunable, tunable_regions

__all__ = ["Parameters", "Point", "Search", "Tunable", "Tuned", "TuningCache", "sizes_of", "tunable", "tunable_regions", "work_of"]
