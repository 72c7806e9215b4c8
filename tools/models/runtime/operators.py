"""Makes a `torch.library` operator of a kernel file: inputs and parameters in, new tensors out, with a fake for compilers."""

from __future__ import annotations

import contextlib
import copy
import importlib
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from tools.models.runtime.plans import Play, played
from tools.models.runtime.playing import Player
from tools.models.runtime.recording import recorded, tensors_in
from tools.models.runtime.rounding import unrounded
from tools.models.runtime.visible import can_be_seen, launched_into_graph, make_visible, untraced

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
"""Whether kernels can run on the CPU."""
MOST_KEPT = 512
"""Sets of parameters for which an operator keeps a module, one for each place in a model; the one used longest ago goes first."""
MOST_ARGUMENTS = 60
"""Arguments beyond which an operator takes its parameters as a list: PyTorch's schemas have 64 at most."""
OPERATORS: list[KernelOperator] = []
"""All of this package."""
_LIBRARIES: list[Any] = []
_NOTHING = contextlib.nullcontext()


class KernelOperator:
    """One operator; `call` is what a compiler sees."""

    def __init__(
        self,
        namespace: str,
        name: str,
        kernel: str,
        inputs: int,
        names: Sequence[str],
        fake: Callable[..., Sequence[torch.Tensor]],
        launches: Sequence[str] = (),
        *,
        seen: bool = True,
        packs: bool = False,
    ) -> None:
        """Define `namespace::name` by the module called `kernel`, whose ModelNew takes `inputs` tensors and has parameters `names`.

        `fake` makes empty tensors of the result's shapes from the inputs. `launches` names Triton kernels of a file whose host code does
        nothing but launch them and call PyTorch. Where they are not `seen`, or there are none, the operator is opaque to a compiler; so it
        is where the module `packs` parameters before its first launch.
        """
        self.name, self._kernel, self._inputs, self.names = name, kernel, inputs, tuple(names)
        self.hits = 0
        """How often its kernels ran; a replay of a CUDA graph is not seen."""
        self.unplanned = ""
        """Why a call could not be played again, where that was to be."""
        self._players: dict[tuple[Any, ...], Player] = {}
        self._template: Any = None
        self._same: dict[tuple[int, ...], Any] = {}
        self._kept: dict[tuple[int, ...], Any] = {}
        many = inputs + len(names) > MOST_ARGUMENTS
        listed = [f"Tensor t{place}" for place in range(inputs if many else inputs + len(names))]
        given = ", ".join([*listed, "Tensor[] held"] if many else listed)
        make: Any = torch.library.Library
        library = make(namespace, "FRAGMENT")
        library.define(f"{name}({given}) -> Tensor[]", tags=(torch.Tag.pt2_compliant_tag, torch.Tag.needs_fixed_stride_order))
        library.impl(name, _of_lists(self.run) if many else self.run, "CompositeExplicitAutograd")
        torch.library.register_fake(f"{namespace}::{name}", lambda *tensors: list(fake(*tensors[:inputs])), lib=library)
        self.launches, self._packs = tuple(launches), packs
        if launches and seen and not packs and not INTERPRETED:
            make_visible(library, f"{namespace}::{name}", _of_lists(self.traced) if many else self.traced)
        _LIBRARIES.append(library)
        OPERATORS.append(self)
        self.many = many
        """Whether it takes its parameters as a list."""
        self.overload: Any = getattr(getattr(torch.ops, namespace), name).default
        self.call: Any = _by_list(self.overload, inputs) if many else self.overload

    def player(self, look: tuple[Any, ...]) -> Player:
        """Give what runs it for tensors of a look, past torch's dispatcher, which takes as long as a launch: where nobody listens there."""
        if look not in self._players:
            _bound(self._players, MOST_KEPT)
            self._players[look] = Player(self)
        return self._players[look]

    def can_be_played(self) -> bool:
        """Whether its host code decides by shapes alone, and Triton's own kernels are launched."""
        return bool(self.launches) and can_be_seen(importlib.import_module(self._kernel), self.launches)

    def run(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        """Run the kernels; results are contiguous and share no memory with what is given. Guards see to it that no gradient is wanted."""
        self.hits += 1
        given, held = tensors[: self._inputs], tensors[self._inputs :]
        # the same objects from call to call, or, from compiled code, others that lie in the same place
        module = self._same.get(tuple(map(id, held))) or self._module(held, tensors[0].device)
        with unrounded(), _on(tensors[0].device):
            found = module.forward(*given)
        return [_own(one, tensors) for one in _listed(found)]

    def recorded(self, *tensors: torch.Tensor) -> tuple[list[torch.Tensor], Callable[[], Play]]:
        """Do the same, and give what makes what plays it for other tensors of the same look."""
        self.hits += 1
        given, held = tensors[: self._inputs], tensors[self._inputs :]
        device = given[0].device
        module = self._with(self._made(device), held)
        with unrounded(), _on(device):
            packed = self.packed(*tensors)
            if self._packs:
                module.packed_weights, module.refresh_weights = self._module(held, device).packed_weights, lambda: False
            found, recording = recorded(module.forward, importlib.import_module(self._kernel), self.launches, given, [*held, *packed])
        results = _listed(found)
        return [_own(one, tensors) for one in results], partial(played, recording, results)

    def packed(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        """List what its module has packed of parameters, packed anew where these have changed."""
        if not self._packs:
            return []
        held = tensors[self._inputs :]
        module = self._same.get(tuple(map(id, held))) or self._module(held, tensors[0].device)
        module.refresh_weights()
        packed: list[torch.Tensor]
        whole, packed = module.__dict__.get("kernelwright_packed", (None, []))
        if whole is not module.packed_weights:
            packed = list(tensors_in(module.packed_weights))
            module.__dict__["kernelwright_packed"] = module.packed_weights, packed
        return packed

    def launched(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        """Run the kernels one by one where they would replay a graph of their own, while another graph is captured: it holds these."""
        self.hits += 1
        given, held = tensors[: self._inputs], tensors[self._inputs :]
        kernels = importlib.import_module(self._kernel)
        # what was captured before is kept for the module itself
        module = copy.copy(self._module(held, tensors[0].device))
        own, kernels.Capture = kernels.Capture, _Launched  # type: ignore[attr-defined]
        try:
            with unrounded():
                found = module.forward(*given)
        finally:
            kernels.Capture = own  # type: ignore[attr-defined]
        return [_own(one, tensors) for one in _listed(found)]

    def replayed(self, *tensors: torch.Tensor) -> list[torch.Tensor]:
        """Run kernels that replay a graph of their own, or launch them while another graph is captured."""
        return (self.launched if torch.cuda.is_current_stream_capturing() else self.run)(*tensors)

    def traced(self, *tensors: torch.Tensor) -> list[torch.Tensor] | None:
        """Do the same in a compiler's graph, where tensors have no contents; it holds the launches themselves. None where it cannot."""
        given, held = tensors[: self._inputs], tensors[self._inputs :]
        template = untraced(partial(self._made, given[0].device))
        kernels = importlib.import_module(self._kernel)
        if not can_be_seen(kernels, self.launches) or self._has_more(template):
            return None
        with unrounded(), launched_into_graph(kernels, self.launches):
            found = self._with(template, held)(*given)
        return [one.clone() if any(one is tensor for tensor in tensors) else one.contiguous() for one in _listed(found)]

    def _has_more(self, template: Any) -> bool:
        """Whether a kernel's module has tensors of its own, which a graph cannot take."""
        return any(value is not None for value in (*template._parameters.values(), *template._buffers.values()))

    def forget(self) -> None:
        """Let go of all parameters."""
        self._same.clear()
        self._kept.clear()

    def _module(self, held: Sequence[torch.Tensor], device: torch.device) -> Any:
        """Give the kernel's module with these parameters: what it packs of them it keeps from call to call."""
        key = tuple([tensor.data_ptr() for tensor in held])
        known = self._kept.get(key)
        if known is not None and [tensor.data_ptr() for tensor in known.kernelwright_held] == list(key):
            return known
        made = self._with(self._made(device), held)
        made.__dict__["kernelwright_held"] = list(held)
        for kept, place in ((self._kept, key), (self._same, tuple(map(id, held)))):
            _bound(kept, MOST_KEPT)
            kept[place] = made
        return made

    def _with(self, template: Any, held: Sequence[torch.Tensor]) -> Any:
        """Copy the module with these parameters."""
        made = copy.copy(template)
        made._parameters, made._buffers = dict(made._parameters), dict(made._buffers)
        for name, tensor in zip(self.names, held, strict=True):
            (made._parameters if name in made._parameters else made._buffers)[name] = tensor
        return made

    def _made(self, device: torch.device) -> Any:
        """Make the module once; the parameters that it draws for itself are replaced in every copy."""
        if self._template is None or self._template[0] != device:
            # what it draws is nobody's business: random numbers of the caller stay as they would be
            with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []), torch.device(device):
                module = importlib.import_module(self._kernel).ModelNew().eval()
            for name in self.names:
                own = module._parameters if name in module._parameters else module._buffers
                own[name] = None
            self._template = device, module.to(device)
        return self._template[1]


def _of_lists(function: Callable[..., Any]) -> Callable[..., Any]:
    """Have a function that takes tensors given some of them in lists."""

    def flat(*given: Any) -> Any:
        return function(*[tensor for one in given for tensor in (one if isinstance(one, list | tuple) else (one,))])

    return flat


def _by_list(operator: Any, inputs: int) -> Callable[..., Any]:
    """Have an operator that takes its parameters as a list given all tensors one after the other."""

    def call(*tensors: torch.Tensor) -> Any:
        return operator(*tensors[:inputs], list(tensors[inputs:]))

    return call


def _on(device: torch.device) -> Any:
    """Have kernels launched on the device of their tensors, where a model lies on several."""
    return torch.cuda.device(device) if device.type == "cuda" and device.index != torch.cuda.current_device() else _NOTHING


class _Launched:
    """Stands in a kernel's file for what captures its forward, and runs it as it is."""

    def __init__(self, forward: Callable[..., Any], module: Any, inputs: Sequence[Any]) -> None:
        self._forward, self._module = forward, module

    def is_stale(self) -> bool:
        """Be made anew in each call."""
        return True

    def replay(self, inputs: Sequence[Any]) -> Any:
        """Launch."""
        return self._forward(self._module, *inputs)


def _listed(found: Any) -> list[torch.Tensor]:
    return [found] if isinstance(found, torch.Tensor) else list(found)


def _bound(kept: dict[Any, Any], most: int) -> None:
    """Make room for one more: the oldest goes."""
    if len(kept) >= most:
        del kept[next(iter(kept))]


def _own(result: torch.Tensor, given: Sequence[torch.Tensor]) -> torch.Tensor:
    """Give a result that is contiguous, and copied where it lies in what was given."""
    place = result.data_ptr()
    return result.clone() if any(tensor.data_ptr() == place for tensor in given) else result.contiguous()
