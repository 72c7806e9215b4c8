"""How much each kind of action promises against each bottleneck: the built-in planner's prior, before any evidence.

0 is no use, 10 is what to do first. A row follows from what the bottleneck means; the figures only order the kinds, are
judgements of ours and no measurements, and give way to recalled strategies and to what was tried. A rewrite has 0: its idea is a model's.
"""

from __future__ import annotations

from tools.records import ActionKind, Bottleneck

SCORES: dict[Bottleneck, dict[ActionKind, float]] = {
    # near the memory's rate with little more than the compulsory bytes: only details are left
    Bottleneck.DRAM_BANDWIDTH: {
        ActionKind.FUSION: 3.0,
        ActionKind.VECTORISATION: 2.5,
        ActionKind.TILING: 2.5,
        ActionKind.LAUNCH: 2.0,
        ActionKind.ALGORITHM: 2.0,
        ActionKind.PRECISION: 1.5,
        ActionKind.PIPELINE: 1.5,
        ActionKind.LAYOUT: 1.0,
        ActionKind.REORDERING: 1.0,
        ActionKind.REWRITE: 0.0,
    },
    # intermediates and re-reads: keep values on chip, above all by fusing
    Bottleneck.EXCESS_TRAFFIC: {
        ActionKind.FUSION: 10.0,
        ActionKind.ALGORITHM: 7.0,
        ActionKind.REORDERING: 5.0,
        ActionKind.TILING: 5.0,
        ActionKind.LAYOUT: 4.0,
        ActionKind.VECTORISATION: 2.0,
        ActionKind.PRECISION: 2.0,
        ActionKind.LAUNCH: 1.5,
        ActionKind.PIPELINE: 1.0,
        ActionKind.REWRITE: 0.0,
    },
    # too little in flight: wider accesses, more rows a program, deeper pipelines, more warps
    Bottleneck.MEMORY_LATENCY: {
        ActionKind.VECTORISATION: 8.0,
        ActionKind.TILING: 7.0,
        ActionKind.LAUNCH: 6.0,
        ActionKind.PIPELINE: 5.5,
        ActionKind.LAYOUT: 5.0,
        ActionKind.FUSION: 4.0,
        ActionKind.REORDERING: 3.0,
        ActionKind.ALGORITHM: 3.0,
        ActionKind.PRECISION: 1.0,
        ActionKind.REWRITE: 0.0,
    },
    # the right unit is busy: better tiles feed it, less arithmetic frees it
    Bottleneck.COMPUTE: {
        ActionKind.TILING: 6.5,
        ActionKind.PIPELINE: 6.0,
        ActionKind.LAUNCH: 5.0,
        ActionKind.ALGORITHM: 4.5,
        ActionKind.PRECISION: 4.0,
        ActionKind.REORDERING: 3.0,
        ActionKind.VECTORISATION: 2.0,
        ActionKind.FUSION: 2.0,
        ActionKind.LAYOUT: 2.0,
        ActionKind.REWRITE: 0.0,
    },
    # the wrong unit is busy: move the products to tensor cores as far as the policy allows
    Bottleneck.COMPUTE_UNIT: {
        ActionKind.PRECISION: 9.0,
        ActionKind.ALGORITHM: 8.0,
        ActionKind.LAYOUT: 4.5,
        ActionKind.TILING: 4.0,
        ActionKind.PIPELINE: 3.0,
        ActionKind.FUSION: 2.5,
        ActionKind.LAUNCH: 2.0,
        ActionKind.REORDERING: 1.5,
        ActionKind.VECTORISATION: 1.0,
        ActionKind.REWRITE: 0.0,
    },
    # spills or few resident warps: smaller tiles, or the same tile spread over more warps
    Bottleneck.REGISTERS: {
        ActionKind.TILING: 8.0,
        ActionKind.LAUNCH: 7.0,
        ActionKind.PIPELINE: 4.0,
        ActionKind.ALGORITHM: 4.0,
        ActionKind.VECTORISATION: 3.0,
        ActionKind.REORDERING: 2.0,
        ActionKind.PRECISION: 2.0,
        ActionKind.LAYOUT: 1.0,
        ActionKind.FUSION: 0.5,
        ActionKind.REWRITE: 0.0,
    },
    # staging buffers crowd the multiprocessor: fewer stages, smaller tiles
    Bottleneck.SHARED_MEMORY: {
        ActionKind.PIPELINE: 8.0,
        ActionKind.TILING: 7.5,
        ActionKind.LAYOUT: 4.0,
        ActionKind.PRECISION: 3.5,
        ActionKind.LAUNCH: 3.0,
        ActionKind.ALGORITHM: 3.0,
        ActionKind.REORDERING: 2.0,
        ActionKind.VECTORISATION: 1.0,
        ActionKind.FUSION: 0.5,
        ActionKind.REWRITE: 0.0,
    },
    # too few programs: smaller tiles, or split the long dimension
    Bottleneck.PARALLELISM: {
        ActionKind.TILING: 8.0,
        ActionKind.ALGORITHM: 7.5,
        ActionKind.LAUNCH: 5.5,
        ActionKind.REORDERING: 4.0,
        ActionKind.FUSION: 3.0,
        ActionKind.PIPELINE: 2.0,
        ActionKind.VECTORISATION: 1.5,
        ActionKind.LAYOUT: 1.0,
        ActionKind.PRECISION: 0.5,
        ActionKind.REWRITE: 0.0,
    },
    # launches and host work take the time: fewer kernels
    Bottleneck.LAUNCH: {
        ActionKind.FUSION: 9.5,
        ActionKind.ALGORITHM: 5.0,
        ActionKind.LAUNCH: 4.0,
        ActionKind.TILING: 2.5,
        ActionKind.REORDERING: 1.5,
        ActionKind.VECTORISATION: 1.5,
        ActionKind.LAYOUT: 1.0,
        ActionKind.PIPELINE: 1.0,
        ActionKind.PRECISION: 0.5,
        ActionKind.REWRITE: 0.0,
    },
}

SMALLER = -1
LARGER = 1

DIRECTIONS: dict[tuple[Bottleneck, ActionKind], int] = {
    (Bottleneck.REGISTERS, ActionKind.TILING): SMALLER,
    (Bottleneck.REGISTERS, ActionKind.LAUNCH): LARGER,
    (Bottleneck.REGISTERS, ActionKind.PIPELINE): SMALLER,
    (Bottleneck.SHARED_MEMORY, ActionKind.TILING): SMALLER,
    (Bottleneck.SHARED_MEMORY, ActionKind.PIPELINE): SMALLER,
    (Bottleneck.PARALLELISM, ActionKind.TILING): SMALLER,
    (Bottleneck.MEMORY_LATENCY, ActionKind.TILING): LARGER,
    (Bottleneck.MEMORY_LATENCY, ActionKind.VECTORISATION): LARGER,
    (Bottleneck.MEMORY_LATENCY, ActionKind.LAUNCH): LARGER,
    (Bottleneck.MEMORY_LATENCY, ActionKind.PIPELINE): LARGER,
    (Bottleneck.COMPUTE, ActionKind.TILING): LARGER,
    (Bottleneck.COMPUTE, ActionKind.PIPELINE): LARGER,
}
"""Whether the numbers of such an action should go down or up; it orders options of one kind and region."""

ANY = None
"""Key for the bottlenecks that a row of `VALUES` does not name."""

TUNING_POINTS = 5.5
"""For the tuner's action: one tuning tries what a dozen single steps would, so it comes before these and after structural ones."""

CHOICE_POINTS = 14.0
"""For the cost model's first choice, one less for each after it: they set everything at once, so they come before single steps."""

VALUES: dict[tuple[str, str], dict[Bottleneck | None, float]] = {
    # back to the library only where its products may beat ours
    ("implementation", "library"): {Bottleneck.COMPUTE: -3.0, Bottleneck.COMPUTE_UNIT: -5.0, ANY: -8.0},
    # a graph replaces the host's work on every launch at once; to take one back is for who knows why
    ("capture", "graph"): {Bottleneck.LAUNCH: 7.0},
    ("capture", "none"): {ANY: -8.0},
    # a product less: the work itself shrinks by the length of the sum
    ("algebra", "reduction_pushdown"): {ANY: 12.0},
    # a pass less over a convolution's result, or nothing where the norm is part of its kernel already
    ("algebra", "fold_batch_norm"): {ANY: 4.0},
    ("algorithm", "split"): {Bottleneck.PARALLELISM: 2.0, ANY: -2.0},
    ("algorithm", "l2_two_pass"): {Bottleneck.EXCESS_TRAFFIC: 3.0, ANY: -1.0},
    ("algorithm", "registers"): {Bottleneck.EXCESS_TRAFFIC: 2.0, Bottleneck.REGISTERS: -4.0, Bottleneck.PARALLELISM: -2.0},
    ("algorithm", "online"): {Bottleneck.EXCESS_TRAFFIC: 1.0, Bottleneck.REGISTERS: 2.0, Bottleneck.PARALLELISM: -2.0},
    ("algorithm", "looped"): {Bottleneck.EXCESS_TRAFFIC: -2.0, Bottleneck.REGISTERS: 1.0, Bottleneck.PARALLELISM: -2.0},
    ("precision", "tf32x3"): {Bottleneck.COMPUTE_UNIT: 1.0},
    ("precision", "ieee"): {ANY: -6.0},
    ("accumulate", "chunked"): {ANY: -1.0},
    ("right", "as_is"): {ANY: -1.0},
    # a pass less over the weights in every call; weights that are packed stay so
    ("weights", "prepacked"): {ANY: 3.0},
    ("weights", "every_call"): {ANY: -8.0},
}
"""Points for single values of the guide's parameters, by bottleneck: what the kind alone does not tell."""


def value_points(name: str, value: object, bottleneck: Bottleneck) -> float:
    """Points that `VALUES` has for one parameter; 0 where it has none."""
    if name == "tune":
        return TUNING_POINTS
    if name == "choice":
        return CHOICE_POINTS - float(str(value))
    row = VALUES.get((name, str(value)), {})
    return row.get(bottleneck, row.get(ANY, 0.0))
