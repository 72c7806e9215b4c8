"""A suite: many problem files, from a KernelBench clone or any folder of operator files, and which of them are wanted."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal

from tools.errors import UserError
from tools.nearest import nearest
from tools.records import Record

_LEVEL = re.compile(r"level(\d+)")
_NUMBERED = re.compile(r"(\d+)_.+")
PARTS = "parts.json"
"""File of a suite with a folder for each family: which of them it is developed on, and which are set apart."""

Part = Literal["", "development", "held out"]


class _Parts(Record):
    """The families of each part."""

    development: tuple[str, ...]
    held_out: tuple[str, ...]

    @property
    def of_parts(self) -> tuple[tuple[Part, tuple[str, ...]], ...]:
        """Both parts by name."""
        return ("development", self.development), ("held out", self.held_out)


class SuiteItem(Record):
    """One problem file of a suite."""

    name: str
    """Unique in the suite: `level1/19_ReLU`, `softmax`, or `norms/rms_norm` in a folder of families."""
    file: Path
    level: int = 0
    """KernelBench's level; 0 in any other folder."""
    number: int
    """The number its file name begins with in a KernelBench level; elsewhere its place in the folder by name, from 1."""
    part: Part = ""
    """Whether the suite sets its family apart, to judge by it what was developed on the others; empty where it names no parts."""


class Suite(Record):
    """The problem files of one folder."""

    kind: Literal["kernelbench", "folder"]
    folder: Path
    items: tuple[SuiteItem, ...]
    """In the order of level and number."""


def open_suite(folder: Path, levels: Sequence[int] = ()) -> Suite:
    """List the problems below `folder`: a KernelBench clone, one of its levels, Python files, or a folder of such for each family.

    Of KernelBench only `levels`, if given.
    """
    if not folder.is_dir():
        what = f"{folder} is a file, not a folder" if folder.exists() else f"There is no folder {folder}"
        beside = [str(one) for one in folder.parent.glob("*/")] if folder.parent.is_dir() else []
        raise UserError(
            f"{what}.", f"{nearest(str(folder), beside)}Name a KernelBench clone, one of its levels, or a folder of operator files."
        )
    folder = folder.resolve()
    found = _levels(folder)
    if not found:
        if levels:
            raise UserError(f"{folder} has no levels: it is no KernelBench folder.", "Leave --levels out, or name a KernelBench clone.")
        return _plain(folder)
    if missing := sorted(set(levels) - set(found)):
        raise UserError(f"{folder} has no level {missing[0]}.", f"It has: {', '.join(map(str, sorted(found)))}.")
    wanted = sorted(set(levels) or found)
    items = tuple(item for level in wanted for item in _level_items(found[level], level))
    if not items:
        raise UserError(f"{folder} has levels without any problem file.", "KernelBench's files are called NUMBER_NAME.py.")
    return Suite(kind="kernelbench", folder=folder, items=items)


def select(items: Sequence[SuiteItem], words: str) -> tuple[SuiteItem, ...]:
    """Choose by number or name: `1-20`, `7`, `relu*` add problems; `1%3` keeps of them those with remainder 1 by 3.

    With remainders alone all problems are sifted; several remainders keep what any of them keeps. Empty `words` choose all.
    """
    terms = [word.strip() for word in words.split(",") if word.strip()]
    sieves = [_remainder(term) for term in terms if "%" in term]
    chosen = {term: _chooser(term) for term in terms if "%" not in term}
    for term, choose in chosen.items():
        if not any(map(choose, items)):
            raise UserError(f"No problem of the suite is {term!r}.", f"It has {_overview(items)}.")
    kept = [item for item in items if not chosen or any(choose(item) for choose in chosen.values())]
    kept = [item for item in kept if not sieves or any(keep(item) for keep in sieves)]
    if not kept:
        raise UserError(f"{words!r} leaves no problem.", f"The suite has {_overview(items)}.")
    return tuple(kept)


def parse_shard(word: str) -> tuple[int, int]:
    """Read `2/8` as (2, 8); the empty word is the whole, (1, 1)."""
    match = re.fullmatch(r"(\d+)/(\d+)", word.strip() or "1/1")
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise UserError(f"{word!r} is no shard.", "Write it like 2/8: the second of eight.")
    return int(match[1]), int(match[2])


def shard(items: Sequence[SuiteItem], word: str) -> tuple[SuiteItem, ...]:
    """Take every n-th item, so that neighbours, which are often of one family, go to different shards."""
    index, count = parse_shard(word)
    return tuple(items[index - 1 :: count])


def _levels(folder: Path) -> dict[int, Path]:
    """Folders of KernelBench's levels at `folder`, below its `KernelBench`, or `folder` itself."""
    if match := _LEVEL.fullmatch(folder.name):
        return {int(match[1]): folder}
    for place in (folder / "KernelBench", folder):
        found = {int(m[1]): path for path in sorted(place.glob("level*")) if path.is_dir() and (m := _LEVEL.fullmatch(path.name))}
        if found:
            return found
    return {}


def _level_items(folder: Path, level: int) -> list[SuiteItem]:
    numbered = [(int(match[1]), path) for path in folder.glob("*.py") if (match := _NUMBERED.fullmatch(path.stem))]
    return [SuiteItem(name=f"level{level}/{path.stem}", file=path, level=level, number=number) for number, path in sorted(numbered)]


def _plain(folder: Path) -> Suite:
    paths = _operators(folder, "*.py") or _operators(folder, "*/*.py")
    if not paths:
        raise UserError(f"{folder} holds no Python file.", "Name a folder of operator files, or a KernelBench clone.")
    parts = _parts(folder)
    names = [path.relative_to(folder).with_suffix("").as_posix() for path in paths]
    items = (
        SuiteItem(name=name, file=path, number=place, part=parts.get(path.parent.name, ""))
        for place, (name, path) in enumerate(zip(names, paths, strict=True), 1)
    )
    return Suite(kind="folder", folder=folder, items=tuple(items))


def _operators(folder: Path, pattern: str) -> list[Path]:
    return sorted(path for path in folder.glob(pattern) if not {part[0] for part in path.relative_to(folder).parts} & {"_", "."})


def _parts(folder: Path) -> dict[str, Part]:
    """Read which family belongs to which part; a folder of one family looks above it."""
    file = next((file for file in (folder / PARTS, folder.parent / PARTS) if file.is_file()), None)
    if file is None:
        return {}
    try:
        named = _Parts.model_validate_json(file.read_text())
    except ValueError as error:
        what = f"{file} does not say which families are in which part: {error}."
        raise UserError(what, 'Write it as {"development": ["norms"], "held_out": ["losses"]}.') from None
    return {family: part for part, families in named.of_parts for family in families}


def _remainder(term: str) -> Callable[[SuiteItem], bool]:
    match = re.fullmatch(r"(\d+)%(\d+)", term)
    if match is None or int(match[2]) == 0:
        raise UserError(f"{term!r} is no remainder.", "Write it like 1%3: numbers that leave 1 when divided by 3.")
    rest, divisor = int(match[1]) % int(match[2]), int(match[2])
    return lambda item: item.number % divisor == rest


def _chooser(term: str) -> Callable[[SuiteItem], bool]:
    if match := re.fullmatch(r"(\d+)(?:-(\d+))?", term):
        low, high = int(match[1]), int(match[2] or match[1])
        return lambda item: low <= item.number <= high
    pattern = term.lower()
    return lambda item: fnmatch(item.name.lower(), pattern) or fnmatch(item.file.stem.lower(), pattern)


def _overview(items: Sequence[SuiteItem]) -> str:
    return f"{len(items)} problems with numbers from {min(i.number for i in items)} to {max(i.number for i in items)}"
