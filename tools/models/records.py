"""What is known of a model's modules: the calls they get, and what each call was traced to."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from tools.records import ABI, ProblemShape, Record, Work

LARGEST = 80
"""ATen operators up to which a module is looked at as a whole; of larger ones only the modules inside."""
WHOLE = 24
"""ATen operators up to which a model itself is looked at as one operator: what is larger is a model."""
TENSOR = "<tensor>"
"""Stands for a tensor in the structure of a call or of its result."""


class Input(Record):
    """One tensor that a call was given, in the order in which they stand in it."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    contiguous: bool
    in_rows: bool = False
    """Whether it is not contiguous, but elements along its last dimension lie side by side, as in a part of a wider tensor."""
    held: tuple[int, ...] = ()
    """Dimensions that a loop over time goes along: a kernel is for their size alone."""


class Output(Record):
    """One tensor of a result."""

    shape: tuple[str, ...]
    """Each size as Python, by the inputs' names: `x.shape[1]`."""
    dtype: str


class Trace(Record):
    """A module's call as a problem: what an ordinary run optimises."""

    source: str
    """A problem file in KernelBench's form."""
    structure: Any
    """`[arguments, keywords]` of the call, tensors as TENSOR, all else by value."""
    result: Any
    """The result in the same way; a list for a tuple or list."""
    signature: tuple[tuple[str, str], ...] = ()
    """Of the module's `forward`: name and kind of each argument, as `inspect` calls them."""
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    parameters: dict[str, str]
    """Of the problem's parameters: the name each has in the module."""
    abi: ABI
    work: Work
    shapes: tuple[ProblemShape, ...] = ()
    """Where one problem stands for calls at several: `abi`, `work` and `inputs` are of the shape that takes most of the time."""


class Section(Record):
    """A part of a forward that is a call of its own."""

    name: str
    """Of the attribute that it is of the module: `section_1`."""
    call: str
    """The statement that stands for it."""
    body: str
    """The statements that this stands for."""
    text: str
    """Source of its own forward."""
    outputs: tuple[str, ...]
    """Names of what it gives back; none where it ends the forward."""
    modules: tuple[str, ...] = ()
    """Names of the modules that are called in it."""


class SectionedForward(Record):
    """The forward of a module that is too large to be one operator, cut into sections."""

    digest: str
    """Of the source that it was cut from."""
    text: str
    """Source with the calls of all sections."""
    sections: tuple[Section, ...]


class Group(Record):
    """Calls that are equal: one class, one configuration, the same shapes, dtypes and other arguments."""

    name: str
    """Unique in a model, of `[a-z0-9_]`."""
    title: str
    """The class."""
    paths: tuple[str, ...]
    """Where its modules are in the model; empty string for the model itself."""
    places: tuple[str, ...] = ()
    """The same, with the section that a module is called in, where there is one: `section_1.norm`; empty where there is none."""
    config: str
    """What `apply` compares: the class, plain attributes, and parameters with shapes and dtypes."""
    calls: dict[str, int]
    """By workload: calls in one run of it."""
    us: float
    """Microseconds a call, on average, as `Capture.clock` says."""
    share: float
    """Of the time of all workloads by their weights, what is inside of it is its own, too."""
    operators: int
    """ATen operators of a call that compute or move anything; 0 where it was not run by itself."""
    trace: Trace | None = None
    reason: str = ""
    """Why it is left alone; empty where it is not."""
    autocast: str = ""
    """Dtype to which autocast rounds where it is called; empty where it is off."""
    forward: SectionedForward | None = None
    """Of sections: the forward that they are in. Their paths end with their names."""
    apart: str = ""
    """Why its calls at other shapes are groups of their own; empty where there are none."""

    @property
    def nested(self) -> tuple[str, ...]:
        """Paths by which its modules lie in one another, sections too."""
        return self.places or self.paths


class Capture(Record):
    """What a model does under its workloads."""

    title: str
    """The model's class."""
    clock: str
    """What times are from: `replayed CUDA graphs`, `CUDA events of an eager run` or `wall clock of an eager run on the CPU`."""
    us: dict[str, float]
    """Microseconds of one run, by workload."""
    eager_us: dict[str, float] = Field(default_factory=dict)
    """Of one eager run, where `us` is of CUDA graphs: there the host does not take time."""
    weights: dict[str, float]
    """How often each workload counts."""
    modules: int
    groups: tuple[Group, ...]
