"""The records of an explanation: what each stage of the generator made of an operator."""

from __future__ import annotations

from tools.records import Record


class Operator(Record):
    """One operator of the graph."""

    name: str
    operator: str
    """E.g. `aten.softmax.int`."""
    reads: tuple[str, ...]
    """Values, by name."""
    results: tuple[str, ...]
    """Shape and dtype of each, at the sizes as written."""
    is_view: bool
    """Whether it moves no data."""


class Rewriting(Record):
    """One rewriting of the graph."""

    by: str
    """`canonical form` for every schedule, otherwise what of the schedule asks for it."""
    node: str
    operator: str
    became: tuple[str, ...]
    """Operators that took its place; none where it vanished."""


class ExplainedRegion(Record):
    """One region: operators that share a kernel, or that the library runs."""

    id: str
    template: str
    """`library` where none of ours runs it."""
    operators: tuple[str, ...]
    nodes: tuple[str, ...]
    parameters: dict[str, bool | int | float | str]
    us: float | None
    """What the cost model expects of it, microseconds, estimated; none where it says nothing."""


class ModelledLaunch(Record):
    """One launch of a generated region, as the cost model sees it."""

    region: str
    programs: int
    warps: int
    dram_bytes: int
    flops: int
    """Of products; 0 where it has none."""
    us: float
    """Microseconds, estimated."""


class EmittedFunction(Record):
    """One function of the emitted file."""

    name: str
    kind: str
    """`kernel` where it is launched, `device function` where kernels call it, `host function`, `module`."""
    region: str
    """Whose it is; empty for what several share, or none."""
    line: int
    lines: int


class LeftOperators(Record):
    """What the library runs, and why."""

    region: str
    operators: tuple[str, ...]
    """E.g. `aten.conv2d.default`: those of the region that have this reason."""
    reason: str


class Explanation(Record):
    """Every stage of one operator under one schedule."""

    problem: str
    target: str
    policy: str
    """What kernels may round."""
    explained: str
    """Which schedule: a choice of the cost model, or the initial one."""
    us: float | None
    """What the cost model expects of a call, microseconds, estimated; none where it says nothing."""
    graph: tuple[Operator, ...]
    rewrites: tuple[Rewriting, ...]
    regions: tuple[ExplainedRegion, ...]
    captured: bool
    """Whether the forward is replayed as a CUDA graph."""
    launches: tuple[ModelledLaunch, ...]
    kernels: tuple[EmittedFunction, ...]
    library: tuple[LeftOperators, ...]
    notes: tuple[str, ...]
    """What the coder says beside the source."""
    source: str
