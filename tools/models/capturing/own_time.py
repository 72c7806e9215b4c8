"""Says which modules are left alone as they are too large, although they hold time that no module inside of them accounts for."""

from __future__ import annotations

from tools.models.records import WHOLE, Capture, Group

TELLING = 0.05
"""Share of the model's time from which on a module's own is told of."""


def with_sizes_told(capture: Capture, largest: int) -> Capture:
    """Give the reason to what is left alone without one, is larger than `largest` operators, and has time of its own."""
    shares: dict[str, float] = {}
    for group in capture.groups:
        for path in group.nested:
            shares[path] = shares.get(path, 0.0) + group.share / len(group.paths)
    own = dict(shares)
    for path, share in shares.items():
        outer = _outer(path, shares)
        if outer is not None:
            own[outer] -= share
    return capture.model_copy(update={"groups": tuple(_told(group, own, largest) for group in capture.groups)})


def _outer(path: str, known: dict[str, float]) -> str | None:
    """Find the nearest module around another that is called itself; None for the model."""
    while path:
        path = path.rpartition(".")[0]
        if path in known:
            return path
    return None


def _told(group: Group, own: dict[str, float], largest: int) -> Group:
    model = "" in group.paths
    most = min(largest, WHOLE) if model else largest
    if group.trace or group.reason or group.operators <= most or sum(own[path] for path in group.nested) < TELLING:
        return group
    rest = f"a model of more than {most} is worked on in parts" if model else f"at most {most} become one (--largest)"
    return group.model_copy(update={"reason": f"its call takes {group.operators} operators, {rest}"})
