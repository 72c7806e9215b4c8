"""Parameters of a tile kernel: legal values, and first values from the shapes as written."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from tools.codegen.ir.kernel import Kernel
from tools.codegen.ir.sizes import power_of_two
from tools.codegen.templates.shared.knob import WARPS, Knob, Parameters, Settings
from tools.codegen.templates.tile.layout import MOST_LEVELS, TileLayout
from tools.codegen.templates.tile.orders import written_work
from tools.codegen.templates.tile.placement import tile_layout_of
from tools.codegen.templates.tile.repeats import repeated, stepped
from tools.records import ActionKind

KNOBS: Mapping[str, Knob] = {
    "algorithm": Knob(ActionKind.ALGORITHM, ("flat", "tile")),
    "reduction": Knob(ActionKind.ALGORITHM, ("registers", "looped", "split")),
    "BLOCK_M": Knob(ActionKind.TILING, (1, 2, 4, 8, 16, 32, 64, 128)),
    "BLOCK_N": Knob(ActionKind.TILING, (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)),
    "BLOCK_K": Knob(ActionKind.TILING, (1, 4, 16, 32, 64, 128, 256, 512, 1024, 2048)),
    "SPLITS": Knob(ActionKind.LAUNCH, (8, 32, 128, 512)),
    "STEPS": Knob(ActionKind.TILING, (1, 2, 4, 8, 16, 32, 64)),
    "COPIES": Knob(ActionKind.LAUNCH, (1, 8, 32, 128, 512, 2048)),
    "num_warps": WARPS,
}
SIZING = ("algorithm", "reduction", "BLOCK_M", "BLOCK_N", "BLOCK_K")
"""Parameters that say how large a tile is, beside whether a dimension is walked."""
REFUSED_BY = ("SPLITS", "STEPS", "COPIES", "num_warps")
"""Parameters that a tile may be refused by beside its size."""
SQUARE = 32
"""Rows and columns of a tile that is turned, at first."""
LARGEST = 16384
"""Elements of a tile, at most."""
MOST_LANES = 8
"""Elements of a thread that a loop adds up by themselves, at most: each takes a register."""
COMBINED = 4096
"""Partial results that a program puts together, of which it could have a part: columns of 32 by 128 splits."""
MOST_COMBINED = 2**18
"""The same, of which it must have all: half of that took 5 µs (an H100, 2026-11-26; forces between 8,192 pairs of rows)."""
MOST_WRITTEN = 8192
"""Operations that are written out for one thread, at most: 10,600 made 18,455 lines of PTX, and took 24 s to compile for sm_90."""
HELD = 8192
"""Elements that a tile holds of walked axes, at most."""
MOST_COPIED = 2**20
"""Elements of all copies of a tensor that programs add to, at most: they stay in the L2."""
MOST_BESIDE, RUN = 8, 4
"""Rows beside one another that have the same run, and elements of a run in a step, at first."""
FEW = 16
"""Columns below which rows and columns are one axis, at first."""


def tile_defaults(kernel: Kernel, sms: int) -> Parameters:
    """Tiles of about four elements a thread; short reductions held, long ones stepped along, few long ones shared."""
    plan = tile_layout_of(kernel)
    first = _tile_defaults(plan, sms)
    enough = (warps for warps in WARPS.values if _written(plan, first | {"num_warps": warps}) <= MOST_WRITTEN)
    return first | {"num_warps": max(first["num_warps"], next(enough, 0))}


def _tile_defaults(plan: TileLayout, sms: int) -> Parameters:
    kept = plan.size(plan.grid)
    looped = plan.spanned is not None or (plan.held > HELD and not plan.whole)
    split = looped and plan.splits and kept <= (32 if plan.sums_only else 1) * sms
    first: Parameters = {"algorithm": "flat", "reduction": "split" if split else "looped" if looped else "registers"}
    first |= {"BLOCK_M": 1, "BLOCK_N": 1, "BLOCK_K": 64, "SPLITS": 128 if split else 32, "STEPS": 1, "COPIES": 1}
    first["num_warps"] = 4
    held, beside = _held_first(plan, looped)
    room = 1 if plan.joined else max(1, 1024 // beside)
    if plan.has_rows and plan.size(plan.placed(False)[2]) >= FEW:
        first["algorithm"] = "tile"
    columns = power_of_two(plan.size(plan.placed(first["algorithm"] == "flat")[2]))
    if plan.turned is not None and first["algorithm"] == "tile":
        side = SQUARE if room >= SQUARE * SQUARE else max(1, power_of_two(math.isqrt(room)))
        return first | {"BLOCK_M": side, "BLOCK_N": side}
    first["BLOCK_N"] = min(columns, room)
    if first["algorithm"] == "tile":
        first["BLOCK_M"] = min(128, max(1, min(room // int(first["BLOCK_N"]), 1024 // held)))
    if plan.spanned is not None:
        return first | _of_runs(plan, str(first["algorithm"]), columns)
    if looped and first["BLOCK_N"] == 1 and first["BLOCK_M"] == 1:
        first["BLOCK_K"] = 1024
    return first


def _of_runs(plan: TileLayout, algorithm: str, columns: int) -> Parameters:
    """One row's run a program of one warp, which waits for no other: steps of few elements, since runs end where they like."""
    own = {atom for span in plan.b.spans.values() for atom in plan.b.leaves_of(plan.b.exprs[span.begin])}
    _, rows, _ = plan.placed(algorithm == "flat")
    beside = min(MOST_BESIDE, power_of_two(plan.size(group for group in rows if not set(group) & own)))
    return {"BLOCK_M": beside, "BLOCK_N": min(columns, 1024 // (beside * RUN)), "BLOCK_K": RUN, "num_warps": 1}


def tile_fits(kernel: Kernel, parameters: Settings, knob: str) -> bool:
    """Whether changing `knob` changes the kernel and leaves a tile of a sensible size."""
    plan = tile_layout_of(kernel)
    # what costs least is asked first
    if (knob in _READS and not _READS[knob](plan, parameters)) or tile_refusal(kernel, parameters):
        return False
    return 32 * int(parameters["num_warps"]) <= 4 * tile_elements(plan, parameters)


_READS: Mapping[str, Callable[[TileLayout, Settings], bool]] = {
    "algorithm": lambda plan, _: plan.has_rows,
    "reduction": lambda plan, _: bool(plan.walked) and not plan.whole and plan.spanned is None,
    "BLOCK_M": lambda plan, parameters: parameters["algorithm"] == "tile" and plan.has_rows,
    "BLOCK_N": lambda plan, _: bool(plan.grid),
    "BLOCK_K": lambda plan, parameters: bool(plan.walked) and parameters["reduction"] != "registers",
    "SPLITS": lambda _, parameters: parameters["reduction"] == "split",
    "STEPS": lambda plan, _: repeated(plan) is not None,
    "COPIES": lambda plan, _: bool(plan.added),
}
"""Whether a kernel with some parameters reads another one; any does those that are not named."""


def tile_elements(plan: TileLayout, parameters: Settings) -> int:
    """Elements of a tile's largest value: what is walked may have no columns, as what is put in order and what is looked for in a row."""
    return _tile(plan, parameters)[1]


def extents(plan: TileLayout, parameters: Settings) -> tuple[int, int, int]:
    """Rows, columns and held or stepped elements of a tile, at the sizes as written."""
    return _tile(plan, parameters)[0]


def _tile(plan: TileLayout, parameters: Settings) -> tuple[tuple[int, int, int], int]:
    """Size a tile once for all settings that differ in nothing that says how large it is."""
    kept: dict[tuple[object, ...], tuple[tuple[int, int, int], int]] = plan.__dict__.setdefault("_tiles", {})
    name = (*(parameters[each] for each in SIZING), stepped(plan, parameters))
    if name not in kept:
        kept[name] = _extents(plan, parameters), _elements(plan, parameters)
    return kept[name]


def _elements(plan: TileLayout, parameters: Settings) -> int:
    m, n, _ = _extents(plan, parameters)
    each = _walked_extents(plan, parameters)
    values = _values(plan, parameters["algorithm"] == "flat", stepped(plan, parameters))
    return max(
        ((m if rows else 1) * (n if cols else 1) * math.prod(each[place] for place in along) for rows, cols, along in values), default=1
    )


def apart(plan: TileLayout, parameters: Settings) -> frozenset[int]:
    """Name the reductions whose elements a loop adds up by themselves, and together at its end: no thread waits in a step."""
    m, n, _ = extents(plan, parameters)
    each = _walked_extents(plan, parameters)
    _, rows, cols = plan.placed(parameters["algorithm"] == "flat", stepped(plan, parameters))
    tiled = [({atom for group in groups for atom in group}, extent) for groups, extent in ((rows, m), (cols, n))]
    most = MOST_LANES * 32 * int(parameters["num_warps"])
    found = []
    for expr in plan.reductions:
        source = plan.b.exprs[expr].args[0]
        own = plan.leaves[source]
        elements = math.prod(extent for atoms, extent in tiled if atoms & own) * math.prod(each[place] for place in plan.along(source))
        found += [expr] if elements <= most else []
    return frozenset(found)


def _walked_extents(plan: TileLayout, parameters: Settings) -> list[int]:
    """Elements that a tile has along each walked axis."""
    found = [power_of_two(plan.size(axis)) for axis in plan.walked]
    if parameters["reduction"] != "registers" and plan.looped is not None:
        found[plan.looped] = _stepped_extent(plan, parameters)
    return found


def _stepped_extent(plan: TileLayout, parameters: Settings) -> int:
    """Elements of a step; some run may be as long as all, whatever rows have on average."""
    size, most = plan.size(plan.walked[plan.looped or 0]), int(parameters["BLOCK_K"])
    return most if plan.spanned is not None else min(power_of_two(size), most)


def _values(plan: TileLayout, flat: bool, without: int | None) -> frozenset[tuple[bool, bool, tuple[int, ...]]]:
    """Say of a region's values whether they vary over rows and over columns, and over which walked axes."""
    kept: dict[tuple[bool, int | None], frozenset[tuple[bool, bool, tuple[int, ...]]]] = plan.__dict__.setdefault("_values", {})
    if (flat, without) not in kept:
        _, rows, cols = plan.placed(flat, without)
        one, two = ({atom for group in groups for atom in group} for groups in (rows, cols))
        kept[flat, without] = frozenset((bool(own & one), bool(own & two), plan.along(expr)) for expr, own in plan.leaves.items())
    return kept[flat, without]


def _held_first(plan: TileLayout, looped: bool) -> tuple[int, int]:
    """Elements of walked axes that the largest value has at first, and the largest of those that vary over the columns."""
    columns = {atom for group in plan.grid[-plan.columns :] for atom in group} if plan.grid else set()
    each = _walked_extents(plan, {"reduction": "looped" if looped else "registers", "BLOCK_K": 64})
    found = {expr: math.prod(each[place] for place in plan.along(expr)) for expr in plan.needed}
    beside = (count for expr, count in found.items() if plan.leaves[expr] & columns)
    return max(found.values(), default=1), max(beside, default=1)


def _extents(plan: TileLayout, parameters: Settings) -> tuple[int, int, int]:
    _, rows, cols = plan.placed(parameters["algorithm"] == "flat", stepped(plan, parameters))
    looped = parameters["reduction"] != "registers"
    held = _held(plan, without=plan.looped if looped else None)
    if looped and plan.looped is not None:
        held *= _stepped_extent(plan, parameters)
    m, n = (min(power_of_two(plan.size(groups)), int(parameters[name])) for groups, name in ((rows, "BLOCK_M"), (cols, "BLOCK_N")))
    return m if rows else 1, n if cols else 1, held


def _held(plan: TileLayout, without: int | None = None) -> int:
    """Elements that a tile holds of walked axes."""
    if plan.whole:
        return plan.held
    return math.prod(power_of_two(plan.size(axis)) for place, axis in enumerate(plan.walked) if place != without)


def tile_refusal(kernel: Kernel, parameters: Settings) -> str:
    """Say why a region cannot be written so; nothing where it can. It is found once: a walk comes to a setting from each side."""
    plan = tile_layout_of(kernel)
    known: dict[tuple[object, ...], str] = plan.__dict__.setdefault("_refusals", {})
    name = (*(parameters[each] for each in SIZING), *(parameters.get(each) for each in REFUSED_BY))
    if name not in known:
        known[name] = _refusal(plan, parameters)
    return known[name]


def _refusal(plan: TileLayout, parameters: Settings) -> str:
    copies, steps = (int(parameters.get(name, 1)) for name in ("COPIES", "STEPS"))
    copied = copies * max((output.meta.numel for output in plan.added), default=0)
    reduction = parameters["reduction"]
    reasons = {
        f"nothing is reduced, or more than {MOST_LEVELS} reductions wait for one another": reduction == "split" and not plan.splits,
        "each row has as many elements as it has": reduction != "looped" and plan.spanned is not None,
        "rows are put in order, or accumulated, whole": reduction == "looped" and plan.whole,
        "nothing is reduced": reduction == "looped" and plan.looped is None,
        "of several dimensions in order a program has one row": plan.joined and math.prod(extents(plan, parameters)[:2]) > 1,
        "too little is the same along a dimension": steps > 1 and repeated(plan) is None,
        "a program steps along one dimension": steps > 1 and reduction != "registers",
        "alternating results are made in columns of pairs": plan.pairs and not _pairs(plan, parameters),
        "a sum of some dimensions is added once, and not for each element of others": _adds_again(plan, parameters),
        f"copies of more than {MOST_COPIED} elements": copies > 1 and copied > MOST_COPIED,
        f"a tile of more than {LARGEST} elements": tile_elements(plan, parameters) > LARGEST,
        f"more than {MOST_COMBINED} partial results at once": reduction == "split" and _combined(plan, parameters) > MOST_COMBINED,
        f"more than {MOST_WRITTEN} operations written out for a thread": _written(plan, parameters) > MOST_WRITTEN,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _adds_again(plan: TileLayout, parameters: Settings) -> bool:
    """Whether rows or columns are some dimensions of what is added to memory and some others: no mask says which element is the first."""
    _, rows, cols = plan.placed(parameters["algorithm"] == "flat", stepped(plan, parameters))
    axes = [{atom for group in groups for atom in group} for groups in (rows, cols)]
    return any(axis & plan.atoms_of(output) and axis - plan.atoms_of(output) for output in plan.added for axis in axes)


def _combined(plan: TileLayout, parameters: Settings) -> float:
    """Partial results of one reduction that a program reads at once."""
    if plan.looped is None or (len(plan.levels[plan.looped]) == 1 and plan.parted is not None):
        return 0.0
    m, n, _ = extents(plan, parameters)
    others = [power_of_two(plan.size(axis)) for place, axis in enumerate(plan.walked) if place != plan.looped]
    own = [plan.along(expr) for level in plan.levels[plan.looped] for expr in level]
    each = (math.prod(others[place - (place > plan.looped)] for place in along if place != plan.looped) for along in own)
    return max(each) * m * n * min(int(parameters["SPLITS"]), plan.size(plan.walked[plan.looped]))


def _written(plan: TileLayout, parameters: Settings) -> float:
    """Operations of one thread, written one after the other."""
    orders = sum(written_work(plan.b, expr) for expr in plan.reductions if plan.b.exprs[expr].op == "order")
    return (len(plan.needed) + orders) * tile_elements(plan, parameters) / (32 * int(parameters["num_warps"]))


def _pairs(plan: TileLayout, parameters: Settings) -> bool:
    """Whether columns are one dimension, which counts pairs."""
    return len(plan.placed(parameters["algorithm"] == "flat", stepped(plan, parameters))[2]) == 1


def settled_tile(parameters: Parameters, start: Parameters) -> Parameters:
    """Leave numbers that the algorithm does not read as they were first."""
    idle = set()
    if parameters["algorithm"] == "flat":
        idle.add("BLOCK_M")
    if parameters["reduction"] == "registers":
        idle |= {"BLOCK_K", "SPLITS"}
    if parameters["reduction"] == "looped":
        idle.add("SPLITS")
    return {name: start[name] if name in idle else value for name, value in parameters.items()}
