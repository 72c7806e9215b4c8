"""Records a launch plan while the builder follows a candidate's host code on tensors without contents.

Whatever has no exact place in a plan makes the candidate unsealable, with the reason said; its tier is then another.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tools.evaluation.untrusted.plan.buffers import PlanBuffers
from tools.evaluation.untrusted.plan.fill_patterns import Unsealable, as_it_lies, constant, fills, is_dense, pattern
from tools.evaluation.untrusted.plan.graphs import Captured, moved
from tools.evaluation.untrusted.plan.kernel_step import launched
from tools.evaluation.wire.launch_plan import AnyStep, Buffer, Choice, Fill, KernelLaunch, LaunchPlan, OutputPlace, used
from tools.evaluation.wire.library_calls import WRITES, LibraryCall, View, draws, written_down
from tools.evaluation.wire.library_operators import DROPS_AT, KNOWN, WRITING

if TYPE_CHECKING:
    import torch

_ALLOCATES = frozenset(["empty", "empty_strided", "empty_like", "empty_permuted", "new_empty", "new_empty_strided"])


@dataclass(frozen=True)
class _Ground:
    """What every call of a module finds: its parameters, and what it packed of them."""

    buffers: PlanBuffers
    steps: list[AnyStep]
    cubins: dict[bytes, int]
    reason: str


class Planner:
    """One call's plan in the making; a refusal is remembered and ends it, never the call."""

    def __init__(self) -> None:
        """Begin with none."""
        self.reason = ""
        """Why there is no plan; the first thing that has no place in one."""
        self.recording = False
        """Whether a call is followed."""
        self.several_streams = False
        """Whether the call put work on streams of its own choice."""
        self._ground: _Ground | None = None
        self._captured: dict[int, Captured] = {}
        self._capturing: tuple[list[AnyStep], str, bool] | None = None

    @property
    def captures(self) -> bool:
        """Whether some call captured a CUDA graph."""
        return bool(self._captured)

    def begin(self, inputs: Sequence[torch.Tensor], parameters: Sequence[torch.Tensor], written: Sequence[int] = ()) -> None:
        """Begin with a module that has these parameters, in the ABI's order: with the step that packs them, if there is one.

        `written` are the places of inputs that the reference writes to.
        """
        self._written = frozenset(written)
        self.recording = True
        self.reason = ""
        self._role: Literal["made", "packed"] = "packed"
        self._buffers = PlanBuffers()
        self._steps: list[AnyStep] = []
        self._graphs: list[tuple[int, int]] = []
        self._cubins: dict[bytes, int] = {}
        for index, tensor in enumerate(inputs):
            self._buffers.own(tensor, "input", index)
        for index, tensor in enumerate(parameters):
            self._buffers.own(tensor, "parameter", index)
        self._ground = None

    def begin_call(self) -> None:
        """Begin a call, which finds the module and what it packed."""
        if self._ground is None:
            reason = f"while it packs its weights, {self.reason}" if self.reason else ""
            self._ground = _Ground(self._buffers, self._steps, self._cubins, reason)
        ground = self._ground
        self.recording, self._role, self.reason, self.several_streams = True, "made", ground.reason, False
        self._buffers, self._steps, self._graphs, self._cubins = ground.buffers.copy(), [], [], dict(ground.cubins)

    def finish(self, outputs: Sequence[torch.Tensor]) -> LaunchPlan | None:
        """End the call; None where it has no plan, which `reason` explains."""
        self.recording = False
        if self.reason:
            return None
        try:
            places = tuple(self._output(tensor) for tensor in outputs)
        except Unsealable as refusal:
            self.reason = str(refusal)
            return None
        assert self._ground is not None
        steps, packing = tuple(self._steps), tuple(self._ground.steps)
        read = {place.buffer for place in places}.union(*(used(step, made=False) for step in (*packing, *steps)))
        return LaunchPlan(
            buffers=self._buffers.final(read, kept={place.buffer for place in places}, allotted=self._allotted),
            packing=packing,
            steps=tuple(_without_unread(step, read) for step in steps),
            outputs=places,
            cubins=tuple(base64.b64encode(code).decode() for code in self._cubins),
            several_streams=self.several_streams,
            graphs=tuple(self._graphs),
        )

    def refuse(self, reason: str) -> None:
        """Say that the call does what no plan can hold."""
        if self.recording:
            self.reason = self.reason or reason

    def operator(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any, *, free: bool) -> None:
        """Take one operator of torch that host code called."""
        if not self.recording or self.reason:
            return
        name = str(func).split(".")[1]
        self._buffers.notice(len(self._steps))
        try:
            if name in _ALLOCATES:
                self._buffers.own(result, self._role)
            elif fills(name):
                self._filled(name, args, kwargs, result)
            elif not free:
                self._called(func, args, kwargs, result)
        except Unsealable as refusal:
            self.reason = str(refusal)

    def composed(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], make: Callable[[], Any]) -> Any:
        """Take an operator whose parts depend on the device as one whole: what `make` makes is its result."""
        recording, self.recording = self.recording, False
        try:
            result = make()
        finally:
            self.recording = recording
        self.operator(func, args, kwargs, result, free=False)
        return result

    def launch(self, kernel: Any, values: Mapping[str, Any], grid: Sequence[int]) -> None:
        """Take one launch of a compiled Triton kernel with `values` by name."""
        if not self.recording or self.reason:
            return
        self._buffers.notice(len(self._steps))
        try:
            self._steps.append(launched(kernel, values, grid, self))
        except Unsealable as refusal:
            self.reason = f"kernel {kernel.metadata.name}: {refusal}"

    def choose(self, ways: Sequence[Callable[[], Any]]) -> Any:
        """Take one launch that a device would choose the configuration of: each way of it that can be built; give the first's result."""
        before, found, results, failure = self._steps, [], [], None
        for way in ways:
            self._steps = []
            try:
                results.append(way())
            except Exception as error:
                # a device would drop a configuration that does not build, and try the next
                failure = error
                continue
            found.append(tuple(self._steps))
        self._steps = before
        if failure is not None and not results:
            raise failure
        if any(not isinstance(step, KernelLaunch | Fill) for way in found for step in way):
            self.refuse("a configuration of an autotuned kernel calls the library before its launch")
        elif not self.reason:
            plain = [tuple(step for step in way if isinstance(step, KernelLaunch | Fill)) for way in found]
            self._steps += [Choice(ways=tuple(plain))] if len(plain) > 1 else plain[0]
        return results[0]

    def begin_capture(self) -> None:
        """Record what follows apart: a graph captures it, and it does not happen."""
        if self._capturing is not None:
            self.refuse("it captures a CUDA graph while it captures another")
            return
        self._capturing = (self._steps, self.reason, self.several_streams)
        self._steps, self.reason, self.several_streams = [], "", False

    def end_capture(self, graph: object) -> None:
        """Keep what `graph` captured."""
        if self._capturing is None:
            return
        self._captured[id(graph)] = Captured(tuple(self._steps), self._buffers, tuple(self._cubins), self.reason, self.several_streams)
        (self._steps, self.reason, self.several_streams), self._capturing = self._capturing, None

    def replay(self, graph: object) -> None:
        """Take what `graph` captured as a part of this call."""
        if not self.recording or self.reason:
            return
        captured = self._captured.get(id(graph))
        if captured is None or self._capturing is not None or captured.reason:
            self.reason = captured.reason if captured is not None and captured.reason else "it replays a CUDA graph that nobody followed"
            return
        first = len(self._steps)
        places = self._adopted(captured, first)
        cubins = [self._cubins.setdefault(code, len(self._cubins)) for code in captured.cubins]
        self._steps += [moved(step, places.__getitem__, cubins.__getitem__) for step in captured.steps]
        if captured.steps:
            self._graphs.append((first, len(self._steps)))
        self.several_streams = self.several_streams or captured.several_streams

    def _adopted(self, captured: Captured, first: int) -> dict[int, int]:
        """Give the place in this call of each buffer that a graph uses; what the graph made itself is made by the call."""
        storages = {place: storage for storage, place in captured.buffers.storages.items()}
        places: dict[int, int] = {}
        for place in sorted({place for step in captured.steps for place in used(step)}):
            storage = storages.get(place, 0)
            known = self._buffers.storages.get(storage) if storage else None
            if known is None:
                known = self._buffers.add(Buffer(role=self._role, nbytes=captured.buffers[place].nbytes), storage)
            places[place] = known
            if captured.buffers.until(place) >= 0:
                self._buffers.let_go(known, first + captured.buffers.until(place))
        return places

    def place(self, tensor: torch.Tensor) -> int:
        """Give the place of a tensor's memory, which may be a graph's from an earlier call."""
        if self._buffers.find(tensor) is None:
            storage = tensor.untyped_storage()
            for captured in self._captured.values():
                place = captured.buffers.find(tensor)
                if place is not None and any(place in used(step) for step in captured.steps):
                    return self._buffers.add(Buffer(role=self._role, nbytes=int(storage.nbytes())), storage._cdata)
        return self._buffers.place(tensor)

    def scratch(self, nbytes: int) -> int:
        """Give the place of as much new memory."""
        return self._buffers.add(Buffer(role=self._role, nbytes=nbytes))

    def cubin(self, code: bytes) -> int:
        """Number a kernel's machine code."""
        return self._cubins.setdefault(code, len(self._cubins))

    def _called(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> None:
        """Take an operator that computes something."""
        import torch
        from torch.utils import _pytree

        name = str(func)
        if draws(name, args, kwargs) or (torch.Tag.nondeterministic_seeded in func.tags and name not in DROPS_AT):
            raise Unsealable(f"its host code draws random numbers ({name}), which differ from call to call")
        results = _pytree.tree_leaves(result)
        if name == WRITES or name in WRITING:
            for tensor in _pytree.tree_leaves(kwargs.get("out", args[0] if args else None)):
                self._check_writable(self._buffers[self.place(tensor)], name)
        elif name in KNOWN or name.startswith(("aten._to_copy.", "aten.clone.")):
            for tensor in results:
                if isinstance(tensor, torch.Tensor):
                    self._make(tensor, name)
        call = written_down(func, args, kwargs, results, self._view)
        if call is None:
            raise Unsealable(f"its host code calls the library's {func}")
        self._steps.append(call)

    def _check_writable(self, buffer: Buffer, name: str) -> None:
        role = buffer.role
        if role == "input" and self._role == "made" and buffer.index in self._written:
            return
        if self._role == "packed" and (role != "packed" or name != WRITES):
            raise Unsealable("its host code writes to a parameter" if role != "packed" else f"its host code calls the library's {name}")
        if self._role == "made" and role in ("input", "packed"):
            raise Unsealable(f"its host code writes to an input, or in a call to what it packed ({name})")

    def _make(self, tensor: torch.Tensor, name: str) -> None:
        if self._buffers.find(tensor) is not None:
            raise Unsealable(f"its host code calls {name}, which gives back what it was given")
        self._buffers.own(tensor, self._role)

    def _filled(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> None:
        if not name.endswith("_"):
            self._buffers.own(result, self._role)
        value = constant(name, args, kwargs)
        if not is_dense(result):
            raise Unsealable(f"its host code fills part of a tensor with gaps ({name})")
        item = result.element_size()
        width, bits = pattern(value, str(result.dtype).removeprefix("torch."), item)
        buffer = self.place(result)
        if self._buffers[buffer].role != self._role:
            raise Unsealable("its host code fills an input, a parameter, or in a call what it packed")
        offset, nbytes = result.storage_offset() * item, result.numel() * item
        self._steps.append(Fill(buffer=buffer, offset=offset, nbytes=nbytes, width=width, pattern=bits))

    @property
    def _allotted(self) -> set[int]:
        """Buffers that torch allots."""
        return {view.buffer for step in self._steps if isinstance(step, LibraryCall) for view in step.makes}

    def _view(self, tensor: torch.Tensor) -> View:
        as_it_lies(tensor)
        offset = tensor.storage_offset() * tensor.element_size()
        dtype = str(tensor.dtype).removeprefix("torch.")
        return View(
            buffer=self.place(tensor),
            offset=offset,
            dtype=dtype,
            shape=tuple(map(int, tensor.shape)),
            strides=tuple(map(int, tensor.stride())),
        )

    def _output(self, tensor: torch.Tensor) -> OutputPlace:
        as_it_lies(tensor)
        offset = tensor.storage_offset() * tensor.element_size()
        return OutputPlace(buffer=self.place(tensor), offset=offset, strides=tuple(map(int, tensor.stride())))


def _without_unread(step: AnyStep, read: set[int]) -> AnyStep:
    """Leave away what a call makes and nobody reads: torch may make it of another size, or in another place."""
    if not isinstance(step, LibraryCall) or all(view is None or view.buffer in read for view in step.results):
        return step
    results = tuple(view if view is not None and view.buffer in read else None for view in step.results)
    return step.model_copy(update={"results": results})
