"""Programs of several sizes, read into plain functions: kernels that differ in numbers alone become one."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from tools.inductor.host import host_function
from tools.inductor.kernels import PlainKernel, plain_kernel, short_name
from tools.inductor.launches import OPTIONS, configuration, grid_text, largest, tuned_grid_text
from tools.inductor.lifting import Number, lifted, skeleton
from tools.inductor.records import Launcher, Program, RefusedError, WrittenKernel

_ORIGINS = re.compile(r"^# .*Original ATen: \[(.*)\]\n(?:#.*\n)*(\w+) = async_compile", re.MULTILINE)
_FIRST = 0
"""Place of the problem's own size, whose configurations are chosen on the device; other sizes take the largest blocks, which
serve to check results."""


@dataclass
class _Shared:
    """One kernel of the file."""

    name: str
    function: ast.FunctionDef
    numbers: tuple[str, ...]
    """Parameters that stand for numbers in which the kernels differ."""
    parameters: tuple[str, ...]
    """Those that the wrapper gives, in order, and blocks."""
    helpers: set[str]
    own: list[ast.FunctionDef]
    """Device functions of its own."""
    is_launched: bool = False
    tuned: dict[str, str] = field(default_factory=dict)
    """Autotuned forms by the wrapper's name: their text."""


class Translation:
    """The kernels of all programs, and the host function of each."""

    def __init__(self, programs: Sequence[Program], names: Collection[str] = ()) -> None:
        """Read every kernel, none of which gets one of `names`; raises RefusedError for one that has no plain form."""
        self.programs = programs
        """What Inductor wrote, the problem's own size first."""
        self._of: dict[tuple[int, str], tuple[_Shared, tuple[Number, ...]]] = {}
        self.host_helpers: set[str] = set()
        """Functions of `tools.inductor.host` that host functions call."""
        alike: dict[str, list[tuple[tuple[int, str], PlainKernel]]] = {}
        for place, program in enumerate(programs):
            for name, kernel in program.kernels.items():
                plain = plain_kernel(kernel.source, name)
                key = "\n".join([skeleton(plain.function), *map(ast.dump, plain.own)])
                alike.setdefault(key, []).append(((place, name), plain))
        origins = {name: words for program in programs for words, name in _ORIGINS.findall(program.code)}
        taken = set(names)
        for members in alike.values():
            self._share(members, origins, taken)

    def _share(self, members: list[tuple[tuple[int, str], PlainKernel]], origins: dict[str, str], taken: set[str]) -> None:
        first = members[0][1]
        made = lifted([plain.function for _, plain in members], lambda index: ast.Name(f"n{index}", ast.Load()))
        numbers = tuple(f"n{index}" for index in range(len(made.values[0])))
        name = _fresh(f"{short_name(members[0][0][1])}_kernel", taken)
        function = made.function
        function.name = name
        constexpr = ast.parse("tl.constexpr", mode="eval").body
        function.args.args += [ast.arg(number, constexpr) for number in numbers]
        words = origins.get(members[0][0][1], "").replace("aten.", "").replace("prims.", "")
        if words:
            function.body.insert(0, ast.Expr(ast.Constant(f"What is fused: {words}.")))
        own = [_named_after(name, each, function) for each in first.own]
        shared = _Shared(name, function, numbers, first.parameters, set().union(*(plain.helpers for _, plain in members)), own)
        for (place, _), values in zip(members, made.values, strict=True):
            self._of[place] = shared, values

    def host(self, place: int, names: Sequence[str]) -> ast.FunctionDef:
        """Write the host function of one program, whose arguments get `names`."""
        program = self.programs[place]

        def launch(name: str, arguments: list[ast.expr]) -> str:
            if name not in program.kernels:
                raise RefusedError(f"Inductor's wrapper launches {name}, which is no Triton kernel of its own")
            return self._launch(place, name, arguments)

        function = host_function(program.code, names, launch)
        self.host_helpers |= function.helpers
        text = "\n".join([f"def program({', '.join(function.parameters)}):", *(f"    {line}" for line in function.lines)])
        parsed = ast.parse(text).body[0]
        assert isinstance(parsed, ast.FunctionDef)
        return parsed

    def _launch(self, place: int, name: str, arguments: list[ast.expr]) -> str:
        kernel = self.programs[place].kernels[name]
        shared, values = self._of[place, name]
        shared.is_launched = True
        if not kernel.launchers:
            raise RefusedError(f"Inductor has no configuration for {name}")
        sizes = _sizes(shared.parameters, arguments)
        given = [ast.unparse(argument) for argument in arguments]
        given += [f"{number}={value!r}" for number, value in zip(shared.numbers, values, strict=True)]
        tuned = _tuned_text(shared, kernel, sizes) if place == _FIRST else ("", "")
        if tuned[0]:
            shared.tuned.setdefault(name, tuned[0])
            return f"{_tuned_name(shared, name)}[{tuned[1]}]({', '.join(given)})"
        launcher = kernel.launchers[0] if place == _FIRST or kernel.programs else largest(kernel)
        given += [f"{key}={value}" for key, value in configuration(launcher, shared.parameters).items()]
        return f"{shared.name}[{grid_text(kernel, sizes, launcher)}]({', '.join(given)})"

    def kernel_texts(self) -> list[str]:
        """Write the kernels that are launched, and below each its autotuned forms."""
        shared = dict.fromkeys(id(one) for one, _ in self._of.values() if one.is_launched)
        kernels = {id(one): one for one, _ in self._of.values()}
        return ["\n\n\n".join(self._texts(kernels[key])) for key in shared]

    @property
    def device_helpers(self) -> set[str]:
        """Functions of `tools.inductor.helpers` that launched kernels call."""
        return set().union(*(one.helpers for one, _ in self._of.values() if one.is_launched))

    @staticmethod
    def _texts(shared: _Shared) -> list[str]:
        functions = [ast.unparse(function) for function in (*shared.own, shared.function)]
        return functions + [f"{_tuned_name(shared, name)} = {text}" for name, text in shared.tuned.items()]


def _named_after(kernel: str, own: ast.FunctionDef, caller: ast.FunctionDef) -> ast.FunctionDef:
    """Name a kernel's own function after the kernel, where it is called too."""
    before, own.name = own.name, f"{kernel}_step{''.join(re.findall(r'[0-9]+$', own.name))}"
    for node in ast.walk(caller):
        if isinstance(node, ast.Name) and node.id == before:
            node.id = own.name
    return own


def _tuned_name(shared: _Shared, name: str) -> str:
    index = list(shared.tuned).index(name)
    return f"tuned{f'_{index}' if index else ''}_{shared.name}"


def _tuned_text(shared: _Shared, kernel: WrittenKernel, sizes: dict[str, int]) -> tuple[str, str]:
    """Write the autotuned form of a kernel with several configurations, and its grid; empty where one is left."""
    grid = tuned_grid_text(kernel.grid, sizes)
    if len(kernel.launchers) < 2 or not grid:
        return "", ""
    configs = ",\n        ".join(_config_text(one, shared.parameters) for one in kernel.launchers)
    written = [name for name in shared.parameters if name.startswith("in_out_ptr") or name in _added_to(shared.function)]
    kept = f", restore_value={written!r}" if written else ""
    return f"triton.autotune(\n    configs=[\n        {configs},\n    ],\n    key=[]{kept},\n)({shared.name})", grid


def _config_text(launcher: Launcher, parameters: tuple[str, ...]) -> str:
    blocks = {name: value for name, value in launcher.items() if name in parameters and name not in OPTIONS}
    return f"triton.Config({blocks!r}, {', '.join(f'{name}={launcher[name]}' for name in OPTIONS)})".replace("'", '"')


def _added_to(function: ast.FunctionDef) -> set[str]:
    """Pointers that a kernel adds to atomically: trying it several times would add several times."""
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("tl.atomic_")]
    return {node.id for call in calls for node in ast.walk(call.args[0]) if isinstance(node, ast.Name)}


def _sizes(parameters: tuple[str, ...], arguments: list[ast.expr]) -> dict[str, int]:
    """Numbers of elements that a launch gives."""
    given = zip(parameters, arguments, strict=False)
    return {name: value.value for name, value in given if isinstance(value, ast.Constant) and isinstance(value.value, int)}


def _fresh(name: str, taken: set[str]) -> str:
    made, count = name, 1
    while made in taken:
        count += 1
        made = f"{name}_{count}"
    taken.add(made)
    return made
