"""One idiom as `data/idioms/index.json` has it, and the kernel beside it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

import tools
from tools.records import Bottleneck, OperatorFamily, Record


class Idiom(Record):
    """A way to write a kernel, and where it fits."""

    name: str
    """Of its folder."""
    title: str
    when: str
    """In words."""
    families: tuple[OperatorFamily, ...]
    """Of problems that it may serve."""
    operators: tuple[str, ...]
    """Parts of names of ATen operators that it serves."""
    needs: tuple[OperatorFamily, ...] = ()
    """Families that must all be there."""
    dtypes: tuple[str, ...] = ()
    """Of which one must be an input's or a parameter's; empty: any will do."""
    repeats: bool = False
    """Whether it serves references that do the same in many steps."""
    bottlenecks: tuple[Bottleneck, ...] = ()

    @property
    def folder(self) -> Path:
        """Where `reference.py` and `kernel.py` are."""
        return folder() / self.name

    @property
    def text(self) -> str:
        """The kernel with what it is for, without its imports."""
        lines = (self.folder / "kernel.py").read_text(encoding="utf-8").splitlines()
        code = "\n".join(line for line in lines if not line.startswith(("import ", "from "))).strip()
        return f"{self.title} ({self.name}).\n{self.when}.\n\n{code}\n"


def folder() -> Path:
    """Folder of the idioms, beside `tools` in a checkout and in the installed package alike."""
    return Path(tools.__file__).resolve().parents[1] / "data" / "idioms"


@cache
def all_idioms() -> tuple[Idiom, ...]:
    """Read the list."""
    return TypeAdapter(tuple[Idiom, ...]).validate_json((folder() / "index.json").read_text(encoding="utf-8"))
