"""A made-up landscape for tests of the search methods: times by a formula, measured on nothing and never shipped."""

from __future__ import annotations

import itertools

from benchmarks.search.landscape import Landscape, Place, Step
from tools.records import ROOT, Action, ActionKind, Verdict

EAGER_US = 100.0
TILES = (16, 32, 64, 128, 256)
WARPS = (1, 2, 4, 8)
STAGES = (1, 2, 3)
ALGORITHMS = ("registers", "looped")
KNOBS = {"BLOCK_N": TILES, "num_warps": WARPS, "num_stages": STAGES, "algorithm": ALGORITHMS}
KINDS = {
    "BLOCK_N": ActionKind.TILING,
    "num_warps": ActionKind.LAUNCH,
    "num_stages": ActionKind.PIPELINE,
    "algorithm": ActionKind.ALGORITHM,
}
Setting = tuple[int, int, int, str]
FIRST: Setting = (16, 1, 1, "looped")


def easy_landscape() -> Landscape:
    """One fused region of four knobs behind an unfused start; the best setting is 2.5 times as fast as eager, many are slower."""
    settings = list(itertools.product(TILES, WARPS, STAGES, ALGORITHMS))
    places = [Place(id="unfused", time_us=130.0, signature="k3", lines=90, left=0, threads=128), *(_place(s) for s in settings)]
    fuse = Action(kind=ActionKind.FUSION, region="r0+r1", parameters={"scope": "together"})
    each = Action(kind=ActionKind.FUSION, region="r0+r1", parameters={"scope": "each"})
    steps = [Step(start=ROOT, action=fuse, end=_name(FIRST)), Step(start=ROOT, action=each, end="unfused")]
    steps += [Step(start="unfused", action=fuse, end=_name(FIRST))]
    steps += [step for setting in settings for step in _turns(setting) if _time(setting)]
    return Landscape(
        problem="synthetic-rows",
        families=("softmax",),
        eager_us=EAGER_US,
        compile_us=95.0,
        floor_us=30.0,
        places=tuple(places),
        steps=tuple(steps),
    )


def small_landscape() -> Landscape:
    """Four places: everything can be tried."""
    actions = [Action(kind=ActionKind.TILING, region="r0", parameters={"BLOCK_N": size}) for size in (16, 32, 64)]
    places = (
        Place(id="a", time_us=90.0, signature="a", lines=10),
        Place(id="b", time_us=60.0, signature="b", lines=12),
        Place(id="c", verdict=Verdict.WRONG),
    )
    steps = tuple(Step(start=ROOT, action=action, end=place.id) for action, place in zip(actions, places, strict=True))
    back = Step(start="a", action=actions[1], end="b")
    return Landscape(problem="synthetic-small", eager_us=EAGER_US, places=places, steps=(*steps, back))


def wide_landscape(children: int = 400) -> Landscape:
    """A chain of plateaus with more places than any test evaluates, for the size of the state."""
    places, steps, kinds = [], [], list(ActionKind)
    for number in range(children):
        name = f"{number:016x}"
        places.append(Place(id=name, time_us=90.0 - number / 10, signature=f"k{number % 7} w{number % 5}", lines=40 + number, threads=64))
        parent = ROOT if number < 8 else f"{number // 3:016x}"
        action = Action(kind=kinds[number % 9], region=f"r{number % 4}", parameters={"BLOCK_N": number})
        steps.append(Step(start=parent, action=action, end=name))
    return Landscape(problem="synthetic-wide", eager_us=EAGER_US, floor_us=10.0, places=tuple(places), steps=tuple(steps))


def _place(setting: Setting) -> Place:
    tile, warps, stages, algorithm = setting
    time = _time(setting)
    if not time:
        return Place(id=_name(setting), verdict=Verdict.CRASHED)
    return Place(
        id=_name(setting),
        time_us=time,
        low_us=time * 0.99,
        high_us=time * 1.01,
        signature=f"k1 w{warps} s{stages}",
        lines=40 + (algorithm == "looped") * 12,
        registers=tile / 4,
        shared_bytes=tile * stages * 64,
        threads=warps * 32,
    )


def _time(setting: Setting) -> float:
    """0 where the setting does not run."""
    tile, warps, stages, algorithm = setting
    if tile >= 256 and warps == 1:
        return 0.0
    off = 8.0 * abs(TILES.index(tile) - 3) + 5.0 * abs(WARPS.index(warps) - 2) + 3.0 * abs(stages - 2)
    return 38.0 + off + (9.0 if algorithm == "looped" else 0.0)


def _turns(setting: Setting) -> list[Step]:
    found = []
    for position, (name, values) in enumerate(KNOBS.items()):
        for value in values:
            if value != setting[position]:
                end = (*setting[:position], value, *setting[position + 1 :])
                action = Action(kind=KINDS[name], region="r0", parameters={name: value})
                found.append(Step(start=_name(setting), action=action, end=_name(end)))
    return found


def _name(setting: tuple[object, ...]) -> str:
    return "-".join(map(str, setting))
