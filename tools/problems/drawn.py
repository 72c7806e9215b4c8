"""What a reference's constructor draws at random and keeps where no state dict finds it: a kernel's module would draw something else."""

from __future__ import annotations

from typing import Any, Self

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tools.errors import UserError

WITHOUT_CONTENTS = frozenset({"empty_like", "full_like", "new_empty", "new_full", "new_ones", "new_zeros", "ones_like", "zeros_like"})
"""Operators whose results have nothing of what they are given but its shape."""


class Drawing(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's class has no types
    """Follows random numbers through a constructor, by the memory that they lie in."""

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__()  # type: ignore[no-untyped-call]  # the same
        # kept, so that no other tensor gets the same memory
        self._drawn: dict[int, torch.UntypedStorage] = {}
        self._made_of: dict[int, set[int]] = {}
        """What random numbers were made of, by memory; nothing of those that were drawn."""

    def __enter__(self) -> Self:
        """Follow what is made from here on."""
        super().__enter__()  # type: ignore[no-untyped-call]  # the same
        return self

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator; what it makes or writes of random numbers is random."""
        found = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__ if hasattr(func, "overloadpacket") else ""
        given = [value for value in tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)]
        draws = torch.Tag.nondeterministic_seeded in getattr(func, "tags", ())
        parts = set() if name in WITHOUT_CONTENTS else {_memory(value) for value in given if self.is_drawn(value)}
        if draws or parts:
            made = [value for value in tree_leaves(found) if isinstance(value, torch.Tensor) and value.layout is torch.strided]
            for storage in (value.untyped_storage() for value in made):
                self._drawn[storage._cdata] = storage
                self._made_of.setdefault(storage._cdata, set()).update(parts - {storage._cdata})
        return found

    def is_drawn(self, value: torch.Tensor) -> bool:
        """Whether a tensor holds random numbers, or what was made of them."""
        return value.layout is torch.strided and _memory(value) in self._drawn

    def _is_its_own(self, memory: int, state: set[int]) -> bool:
        """Whether random numbers go into it that are not the state dict's."""
        waiting, seen = [memory], set[int]()
        while waiting:
            one = waiting.pop()
            if one in state or one in seen:
                continue
            seen.add(one)
            if not self._made_of[one]:
                return True
            waiting += self._made_of[one]
        return False

    def kept(self, module: nn.Module) -> dict[int, str]:
        """Name what a module keeps of random numbers outside of its state dict, by the memory that it lies in."""
        found: dict[int, str] = {}
        state = {_memory(value) for value in module.state_dict(keep_vars=True).values() if value.layout is torch.strided}
        for path, part in module.named_modules():
            kept = {name: part._buffers[name] for name in part._non_persistent_buffers_set}
            if not part._forward_pre_hooks:
                # else a hook makes attributes anew at each call, as that of a weight norm does
                kept |= {name: value for name, value in vars(part).items() if not name.startswith("_")}
            for name, value in kept.items():
                for leaf in tree_leaves(value):
                    if isinstance(leaf, torch.Tensor) and self.is_drawn(leaf) and self._is_its_own(_memory(leaf), state):
                        found[_memory(leaf)] = f"{path}.{name}" if path else name
        return found


class Reading(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch's class has no types
    """Refuses operators that read what only one constructor could have drawn."""

    def __init__(self, kept: dict[int, str], title: str) -> None:
        """Take names by memory, as `Drawing.kept` gives them."""
        super().__init__()  # type: ignore[no-untyped-call]  # the same
        self._kept, self._title = kept, title

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operator; UserError where it is given such a tensor."""
        for value in tree_leaves((args, kwargs)):
            if isinstance(value, torch.Tensor) and value.layout is torch.strided and _memory(value) in self._kept:
                raise UserError(
                    f"{self._title}: its {self._kept[_memory(value)]} is drawn at random and is not in the state dict: "
                    "no other module can have the same.",
                    "Make it a parameter, or a buffer that is persistent.",
                )
        return func(*args, **(kwargs or {}))


def _memory(value: torch.Tensor) -> int:
    memory: int = value.untyped_storage()._cdata
    return memory
