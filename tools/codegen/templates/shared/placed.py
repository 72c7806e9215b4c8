"""A result that is one part of a larger tensor: the host's statements that make the tensor, or are given it, and take the part."""

from __future__ import annotations

from collections.abc import Sequence

from tools.codegen.ir.graph import Ref
from tools.codegen.ir.sizes import Sizes, Varying
from tools.codegen.templates.shared.access import Access
from tools.codegen.templates.shared.host_sizes import host_size
from tools.codegen.templates.shared.iteration_space import Space


def whole_name(access: Access) -> str:
    """Name what the host function returns for a result: the larger tensor, where it is a part of one."""
    return f"{access.name}_whole" if access.place else access.name


def bases(writes: Sequence[Access]) -> dict[str, Ref]:
    """List the larger tensors that the host function is given, by name."""
    return {whole_name(access): access.place.base for access in writes if access.place and access.place.base}


def numbers(writes: Sequence[Access]) -> dict[str, Varying]:
    """List the sizes that the host function is given, since none of its tensors tells them, by name."""
    found: dict[str, Varying] = {}
    for access in writes:
        if access.place:
            asked = {"start": access.place.start} if access.place.base else {"total": access.place.total}
            found |= {f"{access.name}_{word}": Varying(sizes) for word, sizes in asked.items() if len(set(sizes)) > 1}
    return found


def placed_lines(space: Space, access: Access, known: dict[str, tuple[int, ...]], device: str) -> list[str]:
    """Write how the host comes by the part that a kernel writes; nothing where a result is no part."""
    place, whole = access.place, whole_name(access)
    if place is None:
        return []
    sizes = [host_size(space, atoms, known) if atoms else "1" for atoms in access.dims]
    part = f"{access.name} = {whole}.narrow({place.dim}, {_text(access, 'start', place.start)}, {sizes[place.dim]})"
    if place.base:
        return [part]
    sizes[place.dim] = _text(access, "total", place.total)
    return [f"{whole} = torch.empty(({', '.join(sizes)}), dtype=torch.{access.meta.dtype}, device={device}.device)", part]


def _text(access: Access, word: str, sizes: Sizes) -> str:
    return str(sizes[0]) if len(set(sizes)) == 1 else f"{access.name}_{word}"
