"""Listens to one call of a candidate: which kernels and library operators really ran, in the runner's own process.

A description for people and no proof: what listens shares its process with the candidate. The call is one more, after all
that are judged, and is not judged itself: listening may disturb a candidate, and must not cost it its verdict.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

from tools.evaluation.untrusted import extensions
from tools.evaluation.untrusted.launch_recorder import is_free


class Heard(NamedTuple):
    """One kernel or operator that ran."""

    kind: Literal["triton", "cuda", "library"]
    name: str


def heard_in(call: Callable[[], object]) -> list[Heard]:
    """Run `call` and list what ran, each once, in order; nothing where it raises."""
    found: dict[Heard, None] = {}
    inside = [0]
    try:
        with _operators(found, inside), _kernels(found, inside), _extensions(found):
            call()
    except Exception:
        return []
    return list(found)


def _operators(found: dict[Heard, None], inside: list[int]) -> Any:
    from torch.utils._python_dispatch import TorchDispatchMode

    class _Operators(TorchDispatchMode):  # type: ignore[no-untyped-call]
        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            # else torch imports its compiler at the first operator, a second's work; nobody compiles here who has not imported it
            return "torch._dynamo" in sys.modules

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if not inside[0] and not is_free(func):
                found[Heard("library", str(func))] = None
            return func(*args, **(kwargs or {}))

    return _Operators()  # type: ignore[no-untyped-call]


@contextmanager
def _kernels(found: dict[Heard, None], inside: list[int]) -> Iterator[None]:
    """Note every launch of a Triton kernel; what the interpreter does inside of one is no operator of the candidate."""
    from triton.runtime import interpreter, jit

    # Triton ships no types
    places: list[tuple[Any, str]] = [(jit.JITFunction, "run"), (interpreter.GridExecutor, "__call__")]
    before = [getattr(owner, name) for owner, name in places]

    def listening(original: Callable[..., Any]) -> Callable[..., Any]:
        def launch(function: Any, *args: Any, **kwargs: Any) -> Any:
            if not kwargs.get("warmup"):
                found[Heard("triton", getattr(function.fn, "__name__", "kernel"))] = None
            inside[0] += 1
            try:
                return original(function, *args, **kwargs)
            finally:
                inside[0] -= 1

        return launch

    try:
        for (owner, name), original in zip(places, before, strict=True):
            setattr(owner, name, listening(original))
        yield
    finally:
        for (owner, name), original in zip(places, before, strict=True):
            setattr(owner, name, original)


@contextmanager
def _extensions(found: dict[Heard, None]) -> Iterator[None]:
    """Note every call of a function of an extension by its module; operators that its C++ calls are noted as any others."""
    functions = [
        (module, name, function)
        for module in extensions.loaded.values()
        for name, function in vars(module).items()
        if callable(function) and not name.startswith("_")
    ]

    def listening(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            found[Heard("cuda", name)] = None
            return original(*args, **kwargs)

        return call

    try:
        for module, name, function in functions:
            setattr(module, name, listening(name, function))
        yield
    finally:
        for module, name, function in functions:
            setattr(module, name, function)
