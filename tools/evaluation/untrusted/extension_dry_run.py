"""An extension as the builder's dry run sees it: its functions launch nothing, what they are given is recorded."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from tools.evaluation.untrusted.launch_recorder import Recorder


class UnfollowedError(Exception):
    """What a function would return is not known without running it."""


class Followed:
    """Stands in for a built extension while there is no device."""

    def __init__(self, module: ModuleType, recorder: Recorder) -> None:
        """Record calls of `module`'s functions with `recorder`."""
        self._module = module
        self._recorder = recorder

    def __getattr__(self, name: str) -> Any:
        """Give what the extension has, its functions followed."""
        found = getattr(self._module, name)
        return self._following(name, found) if callable(found) else found

    def _following(self, name: str, function: Any) -> Callable[..., None]:
        # pybind11 writes the signature into the docstring
        signature = next((line for line in str(function.__doc__).splitlines() if "->" in line), "")

        def call(*args: Any, **kwargs: Any) -> None:
            self._recorder.native(name, (args, kwargs))
            if not signature.endswith("-> None"):
                raise UnfollowedError(f"the extension's {name} makes its own outputs; give it tensors to write to, and return nothing")

        return call
