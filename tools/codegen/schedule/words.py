"""A schedule in words that a person knows: `128x64 tiles, 8 warps` in the place of `r0 (BLOCK_M=128, BLOCK_N=64, num_warps=8)`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tools.codegen.ir.schedule import INSIDE, Region, Schedule
from tools.codegen.schedule.cuda_graph import WHOLE
from tools.codegen.templates.shared.knob import Settings, Value

NAMED = 2
"""Operators of a region that are named; of more the first, and how many."""
_REGIONS = re.compile(r"r\d+(/r\d+)*(\+r\d+(/r\d+)*)*")
_VALUES: Mapping[tuple[str, Value], str] = {
    ("algorithm", "registers"): "rows in registers",
    ("algorithm", "looped"): "rows walked in passes",
    ("algorithm", "online"): "rows in one pass",
    ("algorithm", "split"): "rows split over programs",
    ("algorithm", "l2_two_pass"): "rows read again from the L2",
    ("algorithm", "flat"): "walked as one vector",
    ("algorithm", "tile"): "walked in tiles",
    ("algorithm", "pairs"): "windows shared in pairs",
    ("algorithm", "vec4"): "windows shared in fours",
    ("algorithm", "across"): "lanes along windows",
    ("algorithm", "sequential"): "steps one by one",
    ("algorithm", "scan"): "steps by an associative scan",
    ("algorithm", "chunked"): "steps in chunks of matrix products",
    ("waves", "diagonal"): "a step of each layer at once",
    ("waves", "layered"): "layers one after the other",
    ("ahead", "nothing"): "launches one after the other",
    ("ahead", "launch"): "launches that begin early",
    ("ahead", "weights"): "weights loaded ahead",
    ("programs", "data_parallel"): "one tile a program",
    ("programs", "persistent"): "persistent programs",
    ("programs", "stream_k"): "stream-K programs",
    ("programs", "operand_stationary"): "one operand held",
    ("loads", "descriptors"): "TMA loads",
    ("loads", "pointers"): "loads by pointers",
    ("accumulate", "chunked"): "chunked sums",
    ("accumulate", "direct"): "sums in one accumulator",
    ("right", "k_major"): "right operand copied",
    ("right", "as_is"): "right operand as it is",
    ("right", "exchanged"): "operands exchanged",
    ("weights", "prepacked"): "weights packed once",
    ("weights", "every_call"): "weights as they are",
    ("memory_format", "channels_last"): "channels last",
    ("memory_format", "channels_last_result"): "channels last, the result too",
    ("memory_format", "contiguous"): "channels as the reference has them",
    ("precision", "ieee"): "products at full float32",
    ("implementation", "library"): "by the library",
    ("implementation", "generated"): "by a generated kernel",
    ("implementation", "tile"): "by a kernel of tiles",
    ("implementation", "steps"): "by kernels launched at every step",
    ("reduction", "registers"): "sums in registers",
    ("reduction", "looped"): "sums step by step",
    ("reduction", "split"): "sums shared by programs",
    ("scope", "together"): "as one kernel",
    ("scope", "each"): "as one kernel each",
    ("scope", "library"): "as one library call",
    ("launches", "together"): "independent kernels launched together",
    ("launches", "each"): "a launch for each kernel",
    ("capture", "graph"): "replayed as a CUDA graph",
    ("capture", "none"): "launched at every call",
    ("algebra", "reduction_pushdown"): "the sum taken before the product",
    ("algebra", "fold_batch_norm"): "batch norm folded into the weights",
}
_NUMBERS: Mapping[str, tuple[str, str]] = {
    "ROWS": ("1 row a program", "{} rows a program"),
    "num_warps": ("1 warp", "{} warps"),
    "num_stages": ("no pipelining", "{} stages"),
    "BLOCK_B": ("sequences one at a time", "{} sequences a program"),
    "BLOCK_H": ("1 unit a program", "{} units a program"),
    "BLOCK_K": ("steps of 1", "steps of {}"),
    "BLOCK_M": ("1-row tiles", "{}-row tiles"),
    "BLOCK_N": ("1-column steps", "{}-column steps"),
    "BLOCK_D": ("heads one at a time", "heads in steps of {}"),
    "BLOCK_V": ("values one at a time", "values in steps of {}"),
    "CHUNK": ("1 step at once", "{} steps at once"),
    "SPLIT_K": ("one program a sum", "{} programs a sum"),
    "SPLIT_KEYS": ("one program for all keys", "{} programs share the keys"),
    "SPLITS": ("1 program a row", "{} programs a row"),
    "STEPS": ("1 position a program", "{} positions a program"),
    "SLICES": ("1 slice of the result a program", "{} slices of the result a program"),
    "COPIES": ("sums added in place", "sums added to {} copies"),
    "GROUP_M": ("tiles row by row", "tiles in groups of {}"),
    "ELEMENTS": ("1 element a thread", "{} elements a thread"),
    "UNROLL": ("1 block at once", "{} blocks at once"),
}
"""By parameter: in words where it is 1, and else."""
_USUAL: frozenset[tuple[str, Value]] = frozenset(
    {
        *((name, 1) for name in ("ROWS", "num_stages", "SPLIT_K", "SPLIT_KEYS", "UNROLL", "STEPS", "COPIES", "SLICES")),
        ("GROUP_M", 8),
        *(("algorithm", name) for name in ("flat", "tile")),
        ("programs", "data_parallel"), ("loads", "pointers"), ("accumulate", "chunked"), ("right", "as_is"), ("weights", "every_call"),
        ("memory_format", "contiguous"), ("precision", "ieee"),
    }
)  # fmt: skip
"""What goes without saying."""
_FIRST = ("algorithm", "ROWS", "tile", "ELEMENTS", "num_warps")
"""What says most of a kernel, in this order; the rest follows."""


def schedule_in_words(schedule: Schedule) -> str:
    """Say how a schedule runs its regions; a single kernel for everything needs no name."""
    ours = schedule.generated
    alone = len(schedule.regions) == 1 and not schedule.regions[0].body
    parts = [region_in_words(one) if alone else f"{operators_of(one)}{_often(one)}: {region_in_words(one)}" for one in ours]
    left = [name for region in schedule.regions if not region.is_generated and not region.body for name in region.nodes]
    if left:
        parts.append(f"{_named(left)} by the library")
    if schedule.together:
        parts.append("independent kernels launched together")
    if schedule.captured:
        parts.append("replayed as a CUDA graph")
    return "; ".join(parts)


def _often(region: Region) -> str:
    return " at every step" if INSIDE in region.id else ""


def region_in_words(region: Region) -> str:
    """Say how a generated region is run; numbers that its algorithm leaves idle are left out."""
    used = {name: value for name, value in region.parameters.items() if name not in _idle(region.parameters)}
    said = {name: parameter_in_words(name, value) for name, value in used.items() if (name, value) not in _USUAL}
    if "BLOCK_M" in used and "BLOCK_N" in used:
        flat = used.get("algorithm") == "flat"
        tile = f"{used['BLOCK_N']} elements a program" if flat else f"{used['BLOCK_M']}x{used['BLOCK_N']} tiles"
        said = {"tile": tile, **said}
        del said["BLOCK_M"], said["BLOCK_N"]
    order = [*(name for name in _FIRST if name in said), *(name for name in said if name not in _FIRST)]
    return ", ".join(said[name] for name in order)


def parameter_in_words(name: str, value: Value) -> str:
    """Say what one parameter of a schedule or an action sets."""
    if (name, value) in _VALUES:
        return _VALUES[name, value]
    if name in _NUMBERS:
        one, many = _NUMBERS[name]
        return one if value == 1 else many.format(value)
    return f"{value} products" if name == "precision" else f"{name} {value}"


def place_in_words(region: str, schedule: Schedule | None) -> str:
    """Name what an action applies to by its operators: `r0+r1` is `linear, gelu`. A function keeps its name; an unknown region has none."""
    if region == WHOLE:
        return "all of it"
    found = [schedule.region(name) for name in region.split("+")] if schedule else []
    nodes = [node for one in found if one for node in one.nodes]
    if nodes and all(found):
        return _named(nodes)
    return "" if _REGIONS.fullmatch(region) else region


def operators_of(region: Region) -> str:
    """Name the operators of a region."""
    return _named(region.nodes)


def _named(nodes: list[str] | tuple[str, ...]) -> str:
    return ", ".join(nodes) if len(nodes) <= NAMED else f"{nodes[0]} and {len(nodes) - 1} more"


def _idle(parameters: Settings) -> set[str]:
    """Parameters that others leave without effect: numbers of a row kernel by its algorithm, the order of sums at full precision."""
    algorithm, idle = parameters.get("algorithm"), set()
    reduction = parameters.get("reduction", "split")
    if reduction != "split":
        idle |= {"BLOCK_K", "SPLITS"} if reduction == "registers" else {"SPLITS"}
    if algorithm == "sequential":
        return {"CHUNK", "precision"}
    if algorithm == "scan":
        return {"precision"}
    if algorithm == "registers":
        return {"BLOCK_N", "UNROLL", "SPLITS", "num_stages"}
    if algorithm in ("looped", "online"):
        idle |= {"SPLITS"}
    if parameters.get("ROWS", 1) != 1:
        idle |= {"UNROLL"}
    if parameters.get("precision", "ieee") == "ieee":
        idle |= {"accumulate"}
    return idle
