"""From a kernel as Inductor wrote it to a plain `@triton.jit` function."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from tools.inductor.helpers import OWN_NAMES, is_known
from tools.inductor.records import RefusedError

_OPENINGS = re.compile(r"^(triton|poi|red|per|tem|fused|for|spl)_")


@dataclass
class PlainKernel:
    """One function, and what it stands on."""

    function: ast.FunctionDef
    helpers: set[str] = field(default_factory=set)
    """Device functions of `tools.inductor.helpers` that it calls."""
    own: list[ast.FunctionDef] = field(default_factory=list)
    """Device functions that Inductor wrote for it alone, such as the step of a scan."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of its parameters, in order."""
        return tuple(argument.arg for argument in self.function.args.args)


def plain_kernel(source: str, name: str) -> PlainKernel:
    """Read one kernel; what calls something that has no plain form is refused."""
    functions = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)}
    function = functions.pop(name, None)
    if function is None:
        raise RefusedError(f"Inductor's file of {name} has no such kernel")
    _settle_sizes(function)
    kernel = PlainKernel(function, own=list(functions.values()))
    rewriter = _Plain(kernel)
    for each in (function, *kernel.own):
        each.decorator_list = [ast.parse("triton.jit", mode="eval").body]
        each.body = [changed for node in each.body if (changed := rewriter.visit(node)) is not None]
        _drop_unread(each)
        ast.fix_missing_locations(each)
    return kernel


def short_name(name: str) -> str:
    """Shorten `triton_poi_fused__softmax_add_0` to `softmax_add`."""
    while match := _OPENINGS.match(name):
        name = name[match.end() :]
    name = re.sub(r"(^|_)\d+$", "", name).strip("_")
    words = [word for word in re.sub(r"_+", "_", name).split("_") if word]
    return "_".join(dict.fromkeys(words))[:48].strip("_") or "fused"


def _settle_sizes(function: ast.FunctionDef) -> None:
    """Make sizes that the body sets to numbers, `xnumel = 4096`, compile-time parameters: calls give the same numbers."""
    sizes = {argument.arg: argument for argument in function.args.args if argument.arg.endswith("numel")}
    body: list[ast.stmt] = []
    for node in function.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if isinstance(target, ast.Name) and target.id in sizes and isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            sizes[target.id].annotation = ast.parse("tl.constexpr", mode="eval").body
            continue
        body.append(node)
    function.body = body


def _drop_unread(function: ast.FunctionDef) -> None:
    """Leave out names that are set and never read, of which Inductor writes some in every kernel."""
    while True:
        read = {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
        unread = _Unread(read)
        unread.visit(function)
        if not unread.found:
            return


class _Unread(ast.NodeTransformer):
    def __init__(self, read: set[str]) -> None:
        self._read = read
        self.found = False

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        return self._kept(node, node.targets[0])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        return self._kept(node, node.target)

    def _kept(self, node: ast.stmt, target: ast.expr) -> ast.AST | None:
        if not isinstance(target, ast.Name) or target.id in self._read:
            return node
        self.found = True
        return None

    def visit_If(self, node: ast.If) -> ast.AST:
        """Leave no branch without a statement."""
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node


class _Plain(ast.NodeTransformer):
    """Replaces what only Inductor's modules have."""

    def __init__(self, kernel: PlainKernel) -> None:
        self._kernel = kernel

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """Leave out checks of indices, which Triton only compiles when it debugs."""
        if isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "tl.device_assert":
            return None
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """`tl_math.exp` is `tl.math.exp`; a helper is a function of the file."""
        if not isinstance(node.value, ast.Name):
            return self.generic_visit(node)
        owner = node.value.id
        if owner == "tl_math":
            return ast.parse(f"tl.math.{node.attr}", mode="eval").body
        if owner == "triton_helpers":
            if not is_known(node.attr):
                raise RefusedError(f"a kernel calls triton_helpers.{node.attr}, which has no plain form here")
            self._kernel.helpers.add(node.attr)
            return ast.Name(OWN_NAMES.get(node.attr, node.attr), ast.Load())
        if owner not in ("tl", "libdevice", "triton") and owner.startswith(("torch", "triton_")):
            raise RefusedError(f"a kernel calls {ast.unparse(node)}, which has no plain form here")
        return node
