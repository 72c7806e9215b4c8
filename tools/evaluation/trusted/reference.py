"""The reference at its declared precision and in float64: for trusted processes only."""

from __future__ import annotations

import copy
import gc
import traceback
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from tools.complex_pairs import changed, convert_module, converted, in_parts
from tools.evaluation.trusted.cudnn import cudnn_operators
from tools.evaluation.trusted.rounding import to_tf32
from tools.evaluation.trusted.widening import widened_casts
from tools.evaluation.wire.precision import set_precision
from tools.float8 import magnitude
from tools.records import Precision, Problem

if TYPE_CHECKING:
    import torch

    from tools.problems.opening import Reference


FULL = Precision()
"""Nothing is rounded."""

_PIECE = 1 << 25
"""Elements moved at once."""


@contextmanager
def _defaults(dtype: torch.dtype, precision: Precision = FULL) -> Iterator[None]:
    import torch

    previous = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    set_precision(precision)
    try:
        yield
    finally:
        torch.set_default_dtype(previous)


_kept: dict[str, Reference] = {}
"""References of this process as they were made, by problem."""
_KEPT = 8
_KEPT_BYTES = 8 << 30
"""Of parameters, in all; the last is kept whatever it takes."""


def opened(problem: Problem) -> Reference:
    """Open a problem; where this process has opened it before, copy what that gave: to draw a gigabyte of weights takes two seconds."""
    from tools.problems import open_problem
    from tools.problems.opening import Reference

    known = _kept.pop(problem.id, None) or open_problem(problem)
    _kept[problem.id] = known
    while len(_kept) > 1 and (len(_kept) > _KEPT or sum(map(_nbytes, _kept.values())) > _KEPT_BYTES):
        del _kept[next(iter(_kept))]
    if _reached_by_functions(known.module):
        return open_problem(problem)
    try:
        return Reference(copy.deepcopy(known.module), known.blueprint, known.written, known.updated)
    except (RuntimeError, TypeError):
        # a module that holds what cannot be copied, such as a tensor that was computed
        return open_problem(problem)


def _reached_by_functions(module: torch.nn.Module) -> bool:
    """Tell whether a function that a module holds, such as a lambda of its constructor, refers to modules or tensors.

    Copying copies no function: a copy's would go on with what belongs to the original.
    """
    import torch

    # beside each thing whether it is met within a function
    todo: list[tuple[Any, bool]] = [(vars(part), False) for part in module.modules()]
    seen: set[tuple[int, bool]] = set()
    while todo:
        value, within = todo.pop()
        if within and isinstance(value, torch.Tensor | torch.nn.Module):
            return True
        if (id(value), within) in seen or isinstance(value, torch.Tensor | type | types.ModuleType):
            continue
        seen.add((id(value), within))
        if isinstance(value, types.FunctionType):
            todo.append(((value.__closure__, value.__defaults__, value.__kwdefaults__), True))
        else:
            todo += [(held, within) for held in gc.get_referents(value)]
    return False


def _nbytes(reference: Reference) -> int:
    return sum(value.nbytes for value in reference.parameters().values())


class DeclaredReference:
    """A problem's reference on a device, at the precision the policy declares."""

    def __init__(self, problem: Problem, device: str) -> None:
        """Open it on `device`."""
        self._problem = problem
        self.device = device
        """Where it runs."""
        self._reference = opened(problem)
        self._reference.module.to(device)
        self.uses_cudnn = False
        """Whether it was seen to call what PyTorch gives to cuDNN, in float32; known under the policy `default`, after the first call."""

    def parameters(self) -> dict[str, torch.Tensor]:
        """Parameters and buffers by state-dict key."""
        return self._reference.parameters()

    def load(self, values: Mapping[str, torch.Tensor]) -> None:
        """Replace parameters and buffers."""
        if self._problem.abi.parameters:
            self._reference.module.load_state_dict(dict(values), strict=True)

    def inputs(self, seed: int) -> list[Any]:
        """Positional arguments of one call."""
        return list(self._reference.inputs(seed, self.device))

    def outputs(self, arguments: list[Any]) -> list[torch.Tensor]:
        """Run at the declared precision; outputs have the ABI's dtypes where the policy keeps its inputs, complex ones `in_parts`."""
        if self._problem.policy.name == "default":
            return self._as_pytorch_comes(arguments, self._problem.policy.precision, rounds=self.device == "cpu")
        with self.declared():
            return _parts(self._reference.outputs(self._rounded(arguments)))

    def others(self, arguments: Callable[[], list[Any]]) -> Iterator[list[torch.Tensor]]:
        """Run in the other ways that the policy `default` allows a candidate too, where cuDNN is called; none under other policies.

        Full precision is always allowed: on numbers that TF32 holds, a fast transform of float32 may be further off than a product in TF32.
        At other sizes than the problem's own cuDNN may choose a kernel without TF32 where it has one with it at its own; rounding is
        allowed there all the same, and not at the problem's own size.
        """
        if not self.uses_cudnn:
            return
        yield self._as_pytorch_comes(arguments(), FULL, rounds=False)
        if self.device != "cpu" and self._problem.sizes:
            yield self._as_pytorch_comes(arguments(), FULL, rounds=True)

    def _as_pytorch_comes(self, arguments: list[Any], precision: Precision, *, rounds: bool) -> list[torch.Tensor]:
        import torch

        with _defaults(torch.float32, precision), cudnn_operators(rounds=rounds) as met:
            found = _parts(self._reference.outputs(arguments))
        self.uses_cudnn |= met.any
        return found

    def declared(self) -> AbstractContextManager[None]:
        """Make a context in which torch computes at the declared precision."""
        import torch

        return _defaults(torch.float32, self._problem.policy.precision)

    def prepared(self, arguments: list[Any]) -> tuple[torch.nn.Module, list[Any]]:
        """Give the module and its arguments as a baseline calls them: at the declared precision, nothing converted in the call."""
        rounded = self._rounded(arguments)
        return self._reference.module, rounded

    def _rounded(self, arguments: list[Any]) -> list[Any]:
        import torch

        policy = self._problem.policy.name
        half = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(policy)
        if half is not None:
            convert_module(self._reference.module, half)
            return [converted(value, half) for value in arguments]
        if policy == "tf32" and self.device == "cpu":
            # no CPU rounds to TF32: its inputs, rounded, stand for it
            return [to_tf32(value) for value in arguments]
        return arguments


class Oracle:
    """The same reference with every float in float64, those too that it casts itself, unless it cannot be run so."""

    def __init__(self, problem: Problem, parameters: Mapping[str, torch.Tensor], device: str) -> None:
        """Open it on `device` with these parameters."""
        import torch

        self._device = device
        self._reference = opened(problem)
        if problem.abi.parameters:
            self._reference.module.load_state_dict(dict(parameters), strict=True)
        convert_module(self._reference.module.to(device), torch.float64)
        self.widens = True
        """Whether its casts to float32 give float64; known after the first call."""

    def outputs(self, arguments: list[Any]) -> list[torch.Tensor]:
        """Run in float64; complex outputs are given `in_parts`."""
        return self._run(lambda: list(map(_own_double, arguments)))

    def truth(self, arguments: Callable[[], list[Any]]) -> list[torch.Tensor]:
        """Do so on what `arguments` gives, of which nothing is kept beside its copies in float64."""
        return self._run(lambda: list(map(_own_double, arguments())))

    def _run(self, make: Callable[[], list[Any]]) -> list[torch.Tensor]:
        """Run on arguments in float64 that are `made` for each try and belong to it: nobody else holds what may be gigabytes."""
        import torch

        failed: list[Exception] = []
        for default, widened in ((torch.float64, True), (torch.float64, False), (torch.float32, False)):
            if widened and not self.widens:
                continue
            try:
                found = self._once(make(), default, widened_casts() if widened else nullcontext())
            except torch.OutOfMemoryError:
                raise
            except (RuntimeError, TypeError, AssertionError, ValueError) as error:
                # some operators take float32 alone, a view of bits is as wide as its tensor, and what is made in the default's dtype may
                # not meet what is float32 by name; the frames would hold the arguments
                traceback.clear_frames(error.__traceback__)
                failed.append(error)
            else:
                self.widens = widened
                return found
        raise failed[0]

    def _once(self, given: list[Any], default: torch.dtype, casts: AbstractContextManager[object]) -> list[torch.Tensor]:
        """Run on arguments that are made already: inside of these contexts they would come out in another dtype."""
        with _defaults(default), casts:
            return _parts(self._reference.outputs(given))

    def magnitudes(self, arguments: list[Any]) -> list[torch.Tensor]:
        """Run in float64 on the magnitudes of float arguments and parameters: bounds of every partial sum of a linear reference."""
        import torch

        made = {name: magnitude(value) for name, value in self._reference.parameters().items() if value.is_floating_point()}
        with self.replaced(made):
            return self.outputs([magnitude(v) if isinstance(v, torch.Tensor) and v.is_floating_point() else v for v in arguments])

    @contextmanager
    def replaced(self, values: Mapping[str, torch.Tensor]) -> Iterator[None]:
        """Make a context in which some parameters have other values."""
        module = self._reference.module
        kept = {name: value.clone() for name, value in self._reference.parameters().items() if name in values}
        module.load_state_dict(dict(values), strict=False)
        try:
            yield
        finally:
            module.load_state_dict(kept, strict=False)

    def sensitivity(self, arguments: Callable[[], list[Any]], roundoff: float, *, upward: bool = False) -> list[torch.Tensor]:
        """Run in float64 with every float input moved by one `roundoff`, each up or down at random, or all `upward`."""
        import torch

        def moved(value: torch.Tensor) -> torch.Tensor:
            found = torch.empty(value.shape, dtype=torch.float64, device=value.device)
            # inputs of billions of elements leave no room for several copies in float64
            flat, source = found.view(-1), value.reshape(-1)
            for start in range(0, len(flat), _PIECE):
                exact = source[start : start + _PIECE].double()
                flat[start : start + _PIECE] = (exact.sign() if upward else _signs(exact)).mul_(roundoff).add_(1).mul_(exact)
            return found

        return self._run(lambda: [changed(v, moved) for v in arguments()])


def _parts(outputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    return list(map(in_parts, outputs))


def _own_double(value: Any) -> Any:
    """Give a float tensor in float64, and a copy of every tensor: a reference may write to its inputs before it fails."""
    import torch

    made = converted(value, torch.float64)
    return made.clone() if isinstance(made, torch.Tensor) and made is value else made


def _signs(like: torch.Tensor) -> torch.Tensor:
    """Draw 1 or -1 for every element."""
    import torch

    return torch.randint(0, 2, like.shape, device=like.device, dtype=like.dtype).mul_(2).sub_(1)
