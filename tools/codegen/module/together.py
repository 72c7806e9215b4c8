"""Regions that wait for none of one another as one: a host function for all, and a launch for the first kernels of each, the second, ….

A kernel becomes a device function that is given its program's number; the programs of a launch are those of one region after the other.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from tools.codegen.templates.shared.frame import RegionText, block
from tools.codegen.templates.shared.naming import Names
from tools.syntax import parsed

PROGRAM = "tl.program_id(0)"


@dataclass(frozen=True)
class _Launch:
    """One launch of a host function."""

    kernel: str
    programs: str
    given: tuple[str, ...]
    """By place."""
    named: Mapping[str, str]
    """By name: constants, and how many warps a program has."""


@dataclass(frozen=True)
class _Part:
    """One region: its kernels, and its host function with names that no other has."""

    text: RegionText
    parameters: tuple[str, ...]
    """With their annotations."""
    stages: tuple[tuple[tuple[str, ...], _Launch | None], ...]
    """Statements, and the launch that they come before; none behind the last."""
    results: tuple[str, ...]


def one_of(texts: Sequence[RegionText], name: str) -> RegionText:
    """Write regions, in order, as one host function of a name; its kernels are theirs."""
    most = sum(text.source.count("@triton.jit") for text in texts)
    kernels_of_all = {f"{name}_kernel", *(f"{name}_{number}_kernel" for number in range(2, most + 1))}
    names = Names({name, *kernels_of_all, *(word for text in texts for word in _functions(text))})
    known: dict[object, str] = {}
    parts = [_part(text, names, known) for text in texts]
    device, kernels, lines = list[str](), list[str](), list[str]()
    written: dict[str, str] = {}
    for number, stages in enumerate(zip_longest(*(part.stages for part in parts))):
        launches: list[tuple[str, _Launch]] = []
        for part, stage in zip(parts, stages, strict=True):
            lines += stage[0] if stage else ()
            if stage and stage[1]:
                launches.append((_kernel_text(part.text, stage[1].kernel), stage[1]))
        if launches:
            kernel = _Joined(f"{name}{f'_{number + 1}' if number else ''}_kernel", launches)
            for text, launch in launches:
                if launch.kernel not in written:
                    written[launch.kernel] = text
                    device.append(_device_function(text, launch.kernel))
            kernels.append(kernel.text())
            lines += kernel.call()
    tensors = [each for part in parts for each in part.parameters[: len(part.text.inputs)]]
    numbers = [each for part in parts for each in part.parameters[len(part.text.inputs) :]]
    parameters = list(dict.fromkeys([*tensors, *numbers]))
    results = [each for part in parts for each in part.results]
    head = block(f"def {name}", parameters, f" -> tuple[{', '.join(['torch.Tensor'] * len(results))}]:")
    host = "\n".join([*head, *(f"    {line}" for line in lines), f"    return {', '.join(results)}"])
    refs = list(dict.fromkeys(ref for text in texts for ref in text.inputs))
    return RegionText(
        name,
        tuple(refs),
        tuple(ref for text in texts for ref in text.outputs),
        "\n\n\n".join([*device, *kernels, host]),
        tuple(dict.fromkeys(helper for text in texts for helper in text.helpers)),
        tuple(number for text in texts for number in text.numbers),
    )


def is_one_grid(text: RegionText) -> bool:
    """Whether a region's kernels have programs in one dimension, which do not ask how many there are, and one host function."""
    if sum(isinstance(node, ast.FunctionDef) and not node.decorator_list for node in parsed(text.source).body) > 1:
        return False
    return not text.pack and "num_programs" not in text.source and "program_id(1)" not in text.source


def _functions(text: RegionText) -> list[str]:
    return [node.name for node in parsed(text.source).body if isinstance(node, ast.FunctionDef)]


def _part(text: RegionText, names: Names, known: dict[object, str]) -> _Part:
    """Take a region's text apart; what several regions read is one parameter."""
    host = next(node for node in parsed(text.source).body if isinstance(node, ast.FunctionDef) and node.name == text.function)
    arguments = [argument.arg for argument in host.args.args]
    keys = [*text.inputs, *(("number", text.function, place) for place in range(len(text.numbers)))]
    renamed: dict[str, str] = {}
    for argument, key in zip(arguments, keys, strict=True):
        renamed[argument] = known.setdefault(key, names.fresh(argument) if key not in known else "")
    stored = [node.id for node in ast.walk(host) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    for name in dict.fromkeys(stored):
        if name not in renamed:
            renamed[name] = names.fresh(name)
    lines = text.source.split("\n")

    def words(node: ast.AST) -> str:
        return _renamed(ast.get_source_segment(text.source, node) or "", renamed)

    stages: list[tuple[tuple[str, ...], _Launch | None]] = []
    before: list[str] = []
    for statement in host.body:
        if launch := _launch(statement, words):
            stages.append((tuple(before), launch))
            before = []
        elif not isinstance(statement, ast.Return):
            own = lines[statement.lineno - 1 : statement.end_lineno]
            before += [_renamed(line[4:], renamed) for line in own]
    stages.append((tuple(before), None))
    last = host.body[-1]
    assert isinstance(last, ast.Return)
    assert last.value is not None
    results = last.value.elts if isinstance(last.value, ast.Tuple) else [last.value]
    kinds = {argument.arg: words(argument.annotation) for argument in host.args.args if argument.annotation}
    return _Part(text, tuple(f"{renamed[name]}: {kinds[name]}" for name in arguments), tuple(stages), tuple(words(one) for one in results))


def _launch(statement: ast.stmt, words: Callable[[ast.AST], str]) -> _Launch | None:
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Subscript) or not isinstance(call.func.value, ast.Name):
        return None
    grid = call.func.slice
    programs = words(grid.elts[0]) if isinstance(grid, ast.Tuple) else f"{words(grid)}[0]"
    named = {word.arg: words(word.value) for word in call.keywords if word.arg}
    return _Launch(call.func.value.id, programs, tuple(words(each) for each in call.args), named)


def _renamed(text: str, names: Mapping[str, str]) -> str:
    changed = {name: other for name, other in names.items() if name != other}
    if not changed:
        return text
    # what is passed by name keeps its name
    pattern = rf"(?<![\w.])({'|'.join(map(re.escape, changed))})(?!\w|=(?!=))"
    return re.sub(pattern, lambda found: changed[found[1]], text)


def _kernel_text(text: RegionText, kernel: str) -> str:
    node = next(node for node in parsed(text.source).body if isinstance(node, ast.FunctionDef) and node.name == kernel)
    return "\n".join(text.source.split("\n")[node.lineno - 1 : node.end_lineno])


def _device_name(kernel: str) -> str:
    return f"{kernel.removesuffix('_kernel')}_program"


def _device_function(text: str, kernel: str) -> str:
    """Write a kernel as a function of its program's number."""
    text = text.replace(f"def {kernel}(", f"def {_device_name(kernel)}(", 1).replace(PROGRAM, "program")
    head, _, rest = text.partition("(")
    first = rest.strip("\n").partition("\n")[0]
    given = f"\n    program, {rest.lstrip()}" if ", " in first else f"\n    program,{rest}"
    given = given if rest.startswith("\n") else f"program, {rest}"
    return f"@triton.jit\n{head}({given}"


@dataclass
class _Joined:
    """One kernel of several."""

    name: str
    launches: Sequence[tuple[str, _Launch]]
    given: dict[tuple[str, bool], str] = field(default_factory=dict)
    """Parameters, by what they are given and whether that is a constant."""

    def __post_init__(self) -> None:
        """Name the parameters of each kernel; what is the same in several is one."""
        names, self.calls = Names(("program", "programs")), list[list[str]]()
        names.taken -= {"BLOCK", "BLOCK_M", "BLOCK_N", "ROWS", "SPLITS", "UNROLL", "n_rows", "n_cols", "n_elements", "n_splits", "chunk"}
        for text, launch in self.launches:
            function = parsed(f"@triton.jit\n{text}").body[0]
            assert isinstance(function, ast.FunctionDef)
            values = {each.arg: given for each, given in zip(function.args.args, launch.given, strict=False)} | dict(launch.named)
            call = []
            for each in function.args.args:
                key = (values[each.arg], each.annotation is not None)
                if key not in self.given:
                    self.given[key] = names.fresh(each.arg)
                call.append(self.given[key])
            self.calls.append(call)
        self.ends = [names.fresh(f"end_{place}") for place in range(len(self.launches))]

    def text(self) -> str:
        """Write it."""
        plain = [name for (_, fixed), name in self.given.items() if not fixed]
        constants = [f"{name}: tl.constexpr" for (_, fixed), name in self.given.items() if fixed]
        lines = ["@triton.jit", *block(f"def {self.name}", [*plain, *self.ends[:-1], *constants], ":")]
        lines += [f'    """The programs of {len(self.launches)} regions, one after the other."""', f"    program = {PROGRAM}"]
        begin, alone = "program", len(self.launches) == 1
        for place, ((_, launch), call) in enumerate(zip(self.launches, self.calls, strict=True)):
            last = place == len(self.launches) - 1
            if not alone:
                lines.append("    else:" if last else f"    {'elif' if place else 'if'} program < {self.ends[place]}:")
            lines += block(_device_name(launch.kernel), [begin, *call], "", "    " if alone else "        ")
            begin = f"program - {self.ends[place]}"
        return "\n".join(lines)

    def call(self) -> list[str]:
        """Write its launch."""
        plain = [value for (value, fixed), _ in self.given.items() if not fixed]
        constants = [f"{name}={value}" for (value, fixed), name in self.given.items() if fixed]
        options = [f"{name}={value}" for name, value in self.launches[0][1].named.items() if name in ("num_warps", "num_stages")]
        lines, before = list[str](), ""
        for end, (_, launch) in zip(self.ends, self.launches, strict=True):
            lines.append(f"{end} = {f'{before} + ' if before else ''}{launch.programs}")
            before = end
        return [*lines, *block(f"{self.name}[({before},)]", [*plain, *self.ends[:-1], *constants, *options], "")]
