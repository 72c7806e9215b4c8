"""Writes the package that is delivered: kernels, operators, guards, evidence and tests, as files that need torch and triton alone."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from pprint import pformat
from textwrap import indent
from typing import Any

from tools.models.packaging import guard_text
from tools.models.packaging.delivered import Delivered
from tools.models.packaging.flashinfer import EXPORTS, write_data_set
from tools.models.packaging.hub import write_build
from tools.models.packaging.launches import launches, launches_packed
from tools.models.packaging.vllm import write_plugin
from tools.models.records import SectionedForward
from tools.models.sections.text import only
from tools.records import content_hash

RUNTIME = Path(__file__).parents[1] / "runtime"
COPIED = (
    "call_text.py", "config.py", "forwards.py", "known.py", "launching.py", "layers.py", "looks.py", "operators.py", "origin.py",
    "patching.py", "plans.py", "playing.py", "recording.py", "rounding.py", "rows.py", "sections.py", "texts.py", "trees.py", "visible.py",
)  # fmt: skip
"""Files of the runtime that a package carries."""
TABLE, TRIED = "table.py", "tried.py"
TESTS = Path(__file__).with_name("package_tests.txt")

TOP = '''"""Faster operators for {title}, written by kernelwright: `apply(model)` puts them in, `remove(model)` takes them out.

{summary}
"""

import warnings as _warnings

from .runtime.config import config_of as _config_of
from .runtime.origin import strange as _strange
from .runtime.patching import counted as _counted
from .runtime.patching import place as _place
from .runtime.patching import reset as _reset
from .runtime.patching import take_out as _take_out
from .runtime.visible import show as _show
from .runtime.visible import shows as _shows
from .table import CUTS, PLACES
from .tried import MADE_FOR, TRIED


def apply(model, *, without=(), verify=None):
    """Replace the modules that kernels were made for, and return their paths; calls that a guard turns away go to the original.

    `without` names operators to leave out. With `verify` each module's first call is compared with the original; where it is None, that
    is so on a device, with a torch or a triton, with which the kernels were not tried (`kernelwright recheck` tries them).
    """
    new = _strange(TRIED, MADE_FOR, model) if verify is None else ""
    if new:
        _warnings.warn(f"kernelwright: {{new}}: each first call is compared with the original.", stacklevel=2)
    return _place(model, PLACES, _config_of, cuts=CUTS, without=without, verify=bool(new) if verify is None else verify)


def remove(model):
    """Give every module its own forward back, and return their paths."""
    return _take_out(model)


def see_through(shown=None):
    """Say whether torch.compile sees the kernels of operators, where these are Triton alone; `shown` sets it for what is compiled next."""
    if shown is not None:
        _show(shown=shown)
    return _shows()


def counts(*, reset=False):
    """Say how often each operator ran, and how often the original did, and why."""
    found = _counted()
    if reset:
        _reset()
    return found
'''

HEAD = '''"""What each operator was made for, and where it goes; written by kernelwright."""

import torch

from .runtime.operators import KernelOperator
from .runtime.patching import Entry, Place
from .runtime.sections import Cut

NAMESPACE = "{namespace}_" + __package__.replace(".", "_")


'''

ENTRY = """    Entry(
        operator=KernelOperator(NAMESPACE, "{name}", f"{{__package__}}.kernels.{name}", {inputs}, {names}, fake_{name}{launches}),
        structure={structure},
        result={result},
        parameters={parameters},
        fits=fits_{name},
        state=state_{name},
        compiled={compiled},
        replays={replays},{within}{autocast}
    )"""


TRIES = '''"""Where the kernels were tried; `kernelwright recheck` adds to it."""

MADE_FOR = {made_for!r}
TRIED = {tried}
'''


def tried_text(made_for: str, tried: Sequence[tuple[str, str, str]]) -> str:
    """Write for which device kernels were made, and with which device, torch and triton they were tried."""
    return TRIES.format(made_for=made_for, tried=pformat(tuple(tried), width=120))


def write_package(folder: Path, title: str, summary: str, delivered: Sequence[Delivered], facts: dict[str, Any]) -> None:
    """Write a package to `folder`, which is empty or not there yet; `facts` go into its `package.json`.

    Of them `made_for` and `tried` are what `apply` looks at.
    """
    for name in ("kernels", "problems", "runtime", "tests", "evidence"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        text = (RUNTIME / name).read_text()
        (folder / "runtime" / name).write_text(text.replace("from tools.models.runtime.", "from ."))
    (folder / "__init__.py").write_text(TOP.format(title=title, summary=summary))
    (folder / "tests" / "test_package.py").write_text(TESTS.read_text())
    (folder / TRIED).write_text(tried_text(facts.get("made_for", ""), facts.get("tried", ())))
    write_operators(folder, delivered)
    (folder / "package.json").write_text(json.dumps(facts, indent=1) + "\n")


def write_operators(folder: Path, delivered: Sequence[Delivered]) -> None:
    """Write or rewrite the part of a package that depends on which operators are in it; files of others are removed."""
    kept = {one.group.name for one in delivered}
    for part in ("kernels", "problems", "evidence"):
        for path in (folder / part).iterdir():
            if path.stem not in kept and path.name != "__pycache__":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    for one in delivered:
        (folder / "kernels" / f"{one.group.name}.py").write_text(one.kernel)
        (folder / "problems" / f"{one.group.name}.py").write_text(one.trace.source)
        if one.evidence is not None and not (folder / "evidence" / one.group.name).exists():
            shutil.copytree(one.evidence, folder / "evidence" / one.group.name)
    (folder / TABLE).write_text(table_text(delivered))
    shutil.rmtree(folder / EXPORTS, ignore_errors=True)
    write_build(folder, delivered)
    write_data_set(folder, delivered)
    write_plugin(folder, delivered)


def table_text(delivered: Sequence[Delivered]) -> str:
    """Write the table of operators; its namespace is its own, so that two packages fit into one process."""
    functions = "\n\n".join(part for one in delivered for part in _functions(one))
    # what a compiler keeps of an operator it keeps by its name
    namespace = f"kernelwright_{content_hash(*(text for one in delivered for text in (one.kernel, str(one.seen))))[:8]}"
    alike: dict[str, list[Delivered]] = {}
    for one in delivered:
        alike.setdefault(one.group.config, []).append(one)
    places = "".join(f"{_place(ones)},\n" for ones in alike.values())
    listed = f"PLACES = (\n{places})\n" if delivered else "PLACES = ()\n"
    return HEAD.format(namespace=namespace) + (f"{functions}\n\n" if functions else "") + _cuts(delivered) + listed


def _cuts(delivered: Sequence[Delivered]) -> str:
    """Write how modules are cut whose sections operators are for."""
    names: dict[str, tuple[SectionedForward, list[str]]] = {}
    for one in delivered:
        for path in one.group.paths if one.group.forward else ():
            owner, _, name = path.rpartition(".")
            assert one.group.forward is not None
            names.setdefault(owner, (one.group.forward, []))[1].append(name)
    paths: dict[SectionedForward, list[str]] = {}
    for owner, (forward, own) in names.items():
        paths.setdefault(only(forward, own), []).append(owner)
    listed = [_cut(forward, owners) for forward, owners in paths.items()]
    return "CUTS = (\n" + "".join(listed) + ")\n" if listed else "CUTS = ()\n"


def _cut(forward: SectionedForward, paths: Sequence[str]) -> str:
    sections = tuple((each.name, each.text, each.modules) for each in forward.sections)
    fields = {"paths": tuple(paths), "digest": forward.digest, "text": forward.text, "sections": sections}
    lines = "".join(f"{name}={pformat(value, width=120)},\n" for name, value in fields.items())
    return f"    Cut(\n{indent(lines, ' ' * 8)}    ),\n"


def _functions(one: Delivered) -> list[str]:
    name = one.group.name
    return [
        guard_text.fits_text(name, one.contract, one.trace),
        *([guard_text.within_text(name, one.contract, one.trace, one.aside)] if one.aside else []),
        guard_text.state_text(name, one.contract),
        guard_text.fake_text(name, one.trace),
    ]


def _place(ones: Sequence[Delivered]) -> str:
    """Write where the operators for modules of one configuration go, one for each kind of call."""
    first = ones[0].group
    paths = tuple(dict.fromkeys(path for one in ones for path in one.group.paths))
    lines = [
        "Place(",
        f"    title={first.title!r},",
        *f"    paths={pformat(paths, width=120)},".split("\n"),
        f"    config={first.config!r},",
        "    entries=(",
        *(f"    {line}" for one in ones for line in f"{_entry(one)},".split("\n")),
        "    ),",
        ")",
    ]
    return "\n".join(f"    {line}" for line in lines)


def _entry(one: Delivered) -> str:
    names = [rule.name for rule in one.contract.parameters]
    return ENTRY.format(
        name=one.group.name,
        inputs=len(one.trace.inputs),
        names=names,
        launches=_launches(one),
        structure=repr(one.trace.structure),
        result=repr(one.trace.result),
        parameters=repr(tuple(tuple(one.trace.parameters[each].split(".")) for each in names)),
        compiled=one.in_compilers,
        replays=one.replays,
        within=f"\n        within=within_{one.group.name}," if one.aside else "",
        autocast=f"\n        autocast=torch.{one.group.autocast}," if one.group.autocast else "",
    )


def _launches(one: Delivered) -> str:
    if found := launches(one.kernel):
        return f", {found!r}{'' if one.seen else ', seen=False'}"
    # a compiler's graph has no place for what is packed once
    return f", {found!r}, packs=True" if (found := launches_packed(one.kernel)) else ""
