"""From the wrapper that Inductor wrote to a plain host function: buffers, launches and calls of the library, in their order."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tools.inductor.records import RefusedError

LAID_OUT, REINTERPRETED, ATTENTION = "laid_out", "reinterpreted", "torch.ops.kernelwright.attention.default"
_DROPPED = frozenset(["assert_alignment", "torch.cuda.set_device", "args.clear", "run_intermediate_hooks"])
"""Calls that only check or prepare what a plain file does not have."""
_OUT = frozenset(["mm", "addmm", "bmm", "baddbmm", "_int_mm", "_scaled_mm"])
"""Calls of the library that write to `out`."""
_LIBRARY = ("torch.ops.aten.", "torch.ops.prims.", "aten.")
_METHODS = frozenset(["zero_", "fill_", "copy_"])
Launch = Callable[[str, list[ast.expr]], str]
"""Writes the launch of a kernel by its name in the wrapper and its arguments."""


@dataclass
class HostFunction:
    """A function of the file."""

    parameters: list[str]
    lines: list[str] = field(default_factory=list)
    helpers: set[str] = field(default_factory=set)
    """Of `LAID_OUT` and `REINTERPRETED`, those that it calls."""


def host_function(code: str, names: Sequence[str], launch: Launch) -> HostFunction:
    """Read the wrapper's `call`; its arguments get `names`, and its launches are written by `launch`."""
    call = next((n for n in ast.walk(ast.parse(code)) if isinstance(n, ast.FunctionDef) and n.name == "call"), None)
    if call is None:
        raise RefusedError("Inductor's wrapper has no function `call`")
    reader = _Reader(names, launch)
    for statement in call.body:
        reader.read(statement)
    _drop_layouts(reader.function)
    return reader.function


def _drop_layouts(function: HostFunction) -> None:
    """Leave what is only returned as the library lays it out: nothing of the file reads its memory."""
    kept: list[str] = []
    for place, line in enumerate(function.lines):
        made = re.match(rf"(\w+) = {LAID_OUT}\(", line)
        readers = [later for later in function.lines[place + 1 :] if not later.startswith("del ") and not _only_returns(later)]
        if made is None or any(re.search(rf"\b{made[1]}\b", later) for later in readers):
            kept.append(line)
    function.lines = kept
    if not any(f" = {LAID_OUT}(" in line for line in kept):
        function.helpers.discard(LAID_OUT)


def _only_returns(line: str) -> bool:
    """Whether a line gives results back as they are."""
    return line.startswith("return ") and f"{REINTERPRETED}(" not in line


class _Reader:
    """Reads one statement after the other."""

    def __init__(self, names: Sequence[str], launch: Launch) -> None:
        self.function = HostFunction(list(names))
        self._launch = launch
        self._names: dict[str, str] = {}
        self._moved: set[str] = set()
        self._device = f"{names[0]}.device" if names else ""

    def read(self, node: ast.stmt) -> None:
        """Translate one statement; what is not known is refused."""
        match node:
            case ast.With():
                for inner in node.body:
                    self.read(inner)
            case ast.Assign():
                self._assign(node)
            case ast.Expr(value=ast.Call() as call):
                self._call(call)
            case ast.Delete():
                self._delete(node)
            case ast.Return():
                self._return(node)
            case ast.Pass():
                pass
            case _:
                raise _unknown(node)

    def _say(self, line: str) -> None:
        self.function.lines.append(line)

    def _assign(self, node: ast.Assign) -> None:
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Tuple) and ast.unparse(value) == "args":
            self._unpack([ast.unparse(item) for item in target.elts])
        elif not isinstance(target, ast.Name):
            raise _unknown(node)
        elif isinstance(value, ast.Name):
            self._names[target.id] = self._names.get(value.id, value.id)
            if value.id != target.id:
                self._moved.add(value.id)
                self._moved.discard(target.id)
        elif isinstance(value, ast.Call) and ast.unparse(value.func) in ("get_raw_stream", "copy_if_misaligned"):
            # Triton finds the stream, and the alignment of what it is given
            return
        else:
            text = self._text(value)
            self._names.pop(target.id, None)
            self._moved.discard(target.id)
            self._say(f"{target.id} = {text}")

    def _unpack(self, arguments: list[str]) -> None:
        if len(arguments) != len(self.function.parameters):
            there = len(self.function.parameters)
            raise RefusedError(f"Inductor's wrapper takes {len(arguments)} tensors where the traced graph has {there}")
        self._names |= dict(zip(arguments, self.function.parameters, strict=True))

    def _call(self, call: ast.Call) -> None:
        path = ast.unparse(call.func)
        if path in _DROPPED:
            return
        if path == "assert_size_stride":
            self._lay_out(call)
        elif path.endswith(".run") and any(keyword.arg == "stream" for keyword in call.keywords):
            arguments = [ast.parse(self._text(argument), mode="eval").body for argument in call.args]
            self._say(self._launch(path.removesuffix(".run"), arguments))
        elif path == "extern_kernels.bias_addmm":
            bias, *rest = call.args
            given = [f"{self._text(bias)}[0]", *map(self._text, rest), *map(self._keyword, call.keywords)]
            self._say(f"torch.addmm({', '.join(given)})")
        elif path.startswith("extern_kernels.") and path.partition(".")[2] in _OUT:
            self._say(self._called(f"torch.{path.partition('.')[2]}", call))
        elif path.rpartition(".")[2] in _METHODS or path.startswith(_LIBRARY):
            self._say(self._text(call))
        else:
            raise _unknown(call)

    def _lay_out(self, call: ast.Call) -> None:
        """Have what the library made lie as the kernels after it expect; arguments are contiguous already."""
        name = self._text(call.args[0])
        if name in self.function.parameters or len(call.args) < 3:
            return
        self.function.helpers.add(LAID_OUT)
        self._say(f"{name} = {LAID_OUT}({name}, {ast.unparse(call.args[1])}, {ast.unparse(call.args[2])})")

    def _delete(self, node: ast.Delete) -> None:
        kept = {name for name, own in self._names.items() if own in self.function.parameters}
        for target in node.targets:
            name = ast.unparse(target)
            if name not in self._moved and name not in kept:
                self._say(f"del {self._names.get(name, name)}")

    def _return(self, node: ast.Return) -> None:
        if not isinstance(node.value, ast.Tuple):
            raise _unknown(node)
        self._say(f"return {', '.join(self._text(item) for item in node.value.elts)}{',' * (len(node.value.elts) == 1)}")

    def _text(self, node: ast.expr) -> str:
        """Write an expression."""
        match node:
            case ast.Name():
                return self._names.get(node.id, node.id)
            case ast.Call():
                return self._called_text(node)
            case ast.Subscript(value=ast.Name(), slice=ast.Constant()):
                return f"{self._text(node.value)}[{ast.unparse(node.slice)}]"
            case ast.Tuple() | ast.List():
                inner = ", ".join(map(self._text, node.elts))
                return f"[{inner}]" if isinstance(node, ast.List) else f"({inner}{',' * (len(node.elts) == 1)})"
            case ast.Constant() | ast.UnaryOp(operand=ast.Constant()) | ast.Attribute():
                return ast.unparse(node)
            case _:
                raise _unknown(node)

    def _keyword(self, keyword: ast.keyword) -> str:
        return f"{keyword.arg}={self._text(keyword.value)}"

    def _called(self, name: str, call: ast.Call) -> str:
        return f"{name}({', '.join([*map(self._text, call.args), *map(self._keyword, call.keywords)])})"

    def _called_text(self, call: ast.Call) -> str:
        path = ast.unparse(call.func)
        if path == "empty_strided_cuda":
            return self._empty(call)
        if path == "reinterpret_tensor":
            self.function.helpers.add(REINTERPRETED)
            return self._called(REINTERPRETED, call)
        if path == "extern_kernels.convolution":
            return self._called("torch.convolution", call)
        if path == ATTENTION:
            return self._called("torch.nn.functional.scaled_dot_product_attention", call)
        if path == "device":
            return self._device
        if path.startswith(_LIBRARY) or (isinstance(call.func, ast.Attribute) and call.func.attr in _METHODS):
            return self._called(f"torch.ops.{path}" if path.startswith("aten.") else path, call)
        raise _unknown(call)

    def _empty(self, call: ast.Call) -> str:
        size, stride = (ast.literal_eval(argument) for argument in call.args[:2])
        dtype = ast.unparse(call.args[2])
        if stride == _contiguous(size):
            return f"torch.empty({size}, dtype={dtype}, device={self._device})"
        return f"torch.empty_strided({size}, {stride}, dtype={dtype}, device={self._device})"


def _contiguous(size: Sequence[int]) -> tuple[int, ...]:
    stride, step = [], 1
    for extent in reversed(size):
        stride.append(step)
        step *= max(extent, 1)
    return tuple(reversed(stride))


def _unknown(node: ast.AST) -> RefusedError:
    return RefusedError(f"Inductor's wrapper says `{ast.unparse(node)[:100]}`, which has no plain form here")


HELPERS: Mapping[str, str] = {
    LAID_OUT: f'''def {LAID_OUT}(x, size, stride):
    """x with these strides: itself where it has them, else a copy."""
    if all(own == wanted for own, wanted, extent in zip(x.stride(), stride, size) if extent > 1):
        return x
    made = torch.empty_strided(size, stride, dtype=x.dtype, device=x.device)
    made.copy_(x)
    return made''',
    REINTERPRETED: f'''def {REINTERPRETED}(x, size, stride, offset):
    """The memory of x from an offset on as a tensor of other sizes and strides."""
    return x.as_strided(size, stride, x.storage_offset() + offset)''',
}
