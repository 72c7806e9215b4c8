"""Rewrites the source of a forward so that what it does between the modules that it calls is done by sections: calls of their own."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from tools.models.records import Section, SectionedForward
from tools.models.sections.expressions import LAZY, SELF, Attributes, Expressions

NAME = "section"
"""Sections are `self.section_1`, and so on."""
PART = "part"
"""Names of what a section works out for a call."""
FOREIGN = (
    ast.AsyncFunctionDef, ast.Await, ast.ClassDef, ast.Global, ast.Import, ast.ImportFrom, ast.Nonlocal, ast.Yield, ast.YieldFrom,
)  # fmt: skip
"""What keeps a forward as it is."""


class UncutForwardError(Exception):
    """A forward that cannot be cut; the text says why, as a clause."""


def sectioned(
    source: str, digest: str, attributes: Attributes, taken: Collection[str] = (), kept: Collection[str] = ()
) -> SectionedForward:
    """Cut the source of a forward, which `digest` tells from others; UncutForwardError where that cannot be done.

    `taken` lists names of the module's attributes, `kept` statements that stay where they are.
    """
    function = _function(source)
    names = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    local = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    local |= {node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    cutter = _Cutter(local, names | local, attributes, frozenset(kept))
    function.body = cutter.apart(function.body)
    # with the names of the parts, whatever reads them
    numbers = (number for number in range(1, 1000) if f"{NAME}_{number}" not in taken)
    joiner = _Joiner(function, cutter, numbers)
    function.body = joiner.joined(function.body)
    text = ast.unparse(ast.fix_missing_locations(_bare(function)))
    return SectionedForward(digest=digest, text=text, sections=tuple(joiner.sections))


def only(forward: SectionedForward, names: Collection[str]) -> SectionedForward:
    """Leave some sections in a forward; what the others do stands in it again."""
    text = forward.text
    for section in forward.sections:
        if section.name not in names:
            line = next(line for line in text.split("\n") if line.strip() == section.call)
            indent = line[: len(line) - len(line.lstrip())]
            text = text.replace(line, "\n".join(f"{indent}{each}" for each in section.body.split("\n")))
    return forward.model_copy(update={"text": text, "sections": tuple(one for one in forward.sections if one.name in names)})


def arguments(section: Section) -> list[str]:
    """List what a section is called with, as it stands in the forward."""
    [call] = [node for node in ast.walk(ast.parse(section.call)) if isinstance(node, ast.Call)]
    return [ast.unparse(each) for each in call.args]


def _function(source: str) -> ast.FunctionDef:
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise UncutForwardError("its source does not stand by itself") from error
    function = tree.body[0] if len(tree.body) == 1 else None
    if not isinstance(function, ast.FunctionDef):
        _refuse("it is not one function")
    for node in ast.walk(function):
        if isinstance(node, FOREIGN) or (isinstance(node, ast.FunctionDef | ast.Lambda) and node is not function):
            _refuse(f"it has a {type(node).__name__}")
        if isinstance(node, ast.Name) and node.id in ("super", "__class__", "locals", "vars"):
            _refuse(f"it calls {node.id}")
        if isinstance(node, ast.Attribute) and node.attr.startswith("__") and not node.attr.endswith("__"):
            _refuse("it has names of its class's own")
    return function


def _bare(function: ast.FunctionDef) -> ast.FunctionDef:
    """Take away what is put back from the function that it was: decorators, annotations, defaults; and its docstring."""
    if ast.get_docstring(function, clean=False) is not None:
        del function.body[0]
    function.decorator_list, function.returns = [], None
    for each in ast.walk(function.args):
        if isinstance(each, ast.arg):
            each.annotation = None
    function.args.defaults = [ast.Constant(None) for _ in function.args.defaults]
    function.args.kw_defaults = [default and ast.Constant(None) for default in function.args.kw_defaults]
    return function


def _refuse(why: str) -> NoReturn:
    raise UncutForwardError(why)


@dataclass
class _Cutter:
    """Takes calls that stay in the forward out of the expressions around them."""

    local: set[str]
    names: set[str]
    attributes: Attributes
    kept: frozenset[str]
    looks: Expressions = field(init=False)

    def __post_init__(self) -> None:
        self.looks = Expressions(self.local, self.attributes)

    def apart(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Write each statement as several: calls by themselves, and what is done with their results."""
        return [each for statement in body for each in self._statement(statement)]

    def is_inner(self, statement: ast.stmt) -> bool:
        """Whether a statement may move into a section."""
        if ast.unparse(statement) in self.kept:
            return False
        if isinstance(statement, ast.Assign):
            return all(map(_is_names, statement.targets)) and self.looks.is_inner(statement.value)
        return isinstance(statement, ast.Return) and statement.value is not None and self.looks.is_inner(statement.value)

    def _statement(self, statement: ast.stmt) -> Iterator[ast.stmt]:
        for part, block in _blocks(statement):
            setattr(statement, part, self.apart(block))
        value = getattr(statement, "value", None)
        if not isinstance(statement, ast.Assign | ast.Return | ast.Expr) or value is None or self._is_tangled(value):
            yield statement
            return
        before: list[ast.stmt] = []
        statement.value = self._freed(value, before, is_whole=True)
        yield from before
        yield statement

    def _is_tangled(self, value: ast.expr) -> bool:
        """Whether a call that stays stands where it may not run."""
        lazy = [node for node in ast.walk(value) if isinstance(node, LAZY)]
        return any(not self.looks.is_inner_call(node) for one in lazy for node in ast.walk(one) if isinstance(node, ast.Call))

    def _freed(self, node: ast.expr, before: list[ast.stmt], *, is_whole: bool = False) -> ast.expr:
        """Have a name stand for each call that stays, which is made `before`; one that is the whole expression stays there."""
        if self.looks.is_inner(node):
            return node
        if isinstance(node, ast.Call) and not self.looks.is_inner_call(node):
            node.args = [self._taken(each, before) for each in node.args]
            for keyword in node.keywords:
                keyword.value = self._taken(keyword.value, before)
            return node if is_whole else self._named(node, before)
        for name, child in ast.iter_fields(node):
            if isinstance(child, ast.expr):
                setattr(node, name, self._freed(child, before))
            elif isinstance(child, list):
                setattr(node, name, [self._freed(each, before) if isinstance(each, ast.expr) else each for each in child])
        for keyword in node.keywords if isinstance(node, ast.Call) else ():
            keyword.value = self._freed(keyword.value, before)
        return node

    def _taken(self, node: ast.expr, before: list[ast.stmt]) -> ast.expr:
        """Have what a call takes be worked out before it."""
        if isinstance(node, ast.Starred):
            return node
        node = self._freed(node, before)
        return self._named(node, before) if self.looks.works(node) and self.looks.is_inner(node) else node

    def _named(self, node: ast.expr, before: list[ast.stmt]) -> ast.expr:
        name = next(name for number in range(1, 10_000) if (name := f"{PART}_{number}") not in self.names)
        self.names.add(name)
        self.local.add(name)
        before.append(ast.Assign(targets=[ast.Name(name, ast.Store())], value=node, lineno=0))
        return ast.Name(name, ast.Load())


@dataclass
class _Joiner:
    """Puts statements that may move and stand side by side into sections."""

    function: ast.FunctionDef
    cutter: _Cutter
    numbers: Iterator[int]
    sections: list[Section] = field(default_factory=list)

    def joined(self, body: Sequence[ast.stmt], *, again: bool = False) -> list[ast.stmt]:
        """Write a block with calls of sections; it may run `again` with what it made."""
        found: list[ast.stmt] = []
        run: list[ast.stmt] = []
        for statement in body:
            if self.cutter.is_inner(statement):
                run.append(statement)
                continue
            if run and _is_independent(statement, run):
                # a layer's call may come first, so that what stands on both sides of it is one section
                found.append(statement)
                continue
            found += self._section(run, again=again)
            run = []
            for part, block in _blocks(statement):
                setattr(statement, part, self.joined(block, again=again or isinstance(statement, ast.For | ast.While)))
            found.append(statement)
        return found + self._section(run, again=again)

    def _section(self, run: Sequence[ast.stmt], *, again: bool) -> list[ast.stmt]:
        looks = self.cutter.looks
        working = [place for place, statement in enumerate(run) if looks.works(statement)]
        if not any(map(looks.computes, run)):
            return list(run)
        ended = len(run) if isinstance(run[-1], ast.Return) else working[-1] + 1
        before, inner, after = run[: working[0]], run[working[0] : ended], run[ended:]
        given = self._given(inner)
        outputs = self._outputs(inner, given if again else ())
        if not given or not (outputs or isinstance(inner[-1], ast.Return)):
            return list(run)
        name = f"{NAME}_{next(self.numbers)}"
        call = f"{SELF}.{name}({', '.join(given)})"
        if isinstance(inner[-1], ast.Return):
            call, end = f"return {call}", ""
        else:
            call, end = f"{', '.join(outputs)} = {call}", f"return {', '.join(outputs)}"
        parameters = self._parameters(given)
        lines = [ast.unparse(_Renaming(parameters).visit(ast.parse(ast.unparse(each)))) for each in inner]
        text = "\n    ".join("\n".join([*lines, *([end] if end else [])]).split("\n"))
        self.sections.append(
            Section(
                name=name,
                call=ast.unparse(ast.parse(call)),
                body="\n".join(map(ast.unparse, inner)),
                text=f"def forward({', '.join((SELF, *parameters.values()))}):\n    {text}",
                outputs=tuple(outputs) if end else (),
                modules=tuple(dict.fromkeys(filter(None, map(looks.part_of, (node for each in inner for node in ast.walk(each)))))),
            )
        )
        return [*before, *ast.parse(call).body, *after]

    def _given(self, inner: Sequence[ast.stmt]) -> list[str]:
        """List what a section reads from around it, in order."""
        own: set[str] = set()
        found: dict[str, None] = {}
        for statement in inner:
            value = statement.value if isinstance(statement, ast.Assign | ast.Return) else None
            assert value is not None
            for chain in self.cutter.looks.outer_names(value):
                if chain.split(".")[0] not in own:
                    found[chain] = None
            own |= stored(statement)
        # of what is read itself no attribute is needed
        return [chain for chain in found if not any(chain.startswith(f"{other}.") for other in found)]

    def _outputs(self, inner: Sequence[ast.stmt], next_time: Sequence[str]) -> list[str]:
        """List what a section makes that is read anywhere else in the forward, or by itself the `next_time`."""
        within = {id(node) for statement in inner for node in ast.walk(statement)}
        read = {
            node.id
            for node in ast.walk(self.function)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load | ast.Del) and id(node) not in within
        }
        made = dict.fromkeys(name for statement in inner for name in sorted(stored(statement)))
        return [name for name in made if name in read or name in next_time]

    def _parameters(self, given: Sequence[str]) -> dict[str, str]:
        """Name what a section is given: local names as they are."""
        taken = {*self.cutter.names, SELF}
        found: dict[str, str] = {}
        for chain in given:
            name = chain if "." not in chain else chain.removeprefix(f"{SELF}.").replace(".", "_")
            while name != chain and name in taken:
                name += "_"
            taken.add(name)
            found[chain] = name
        return found


class _Renaming(ast.NodeTransformer):
    """Has parameters stand where chains of attributes stood."""

    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Replace a chain, the longest there is."""
        written = ast.unparse(node)
        return ast.Name(self._names[written], node.ctx) if written in self._names else self.generic_visit(node)


def _blocks(statement: ast.stmt) -> list[tuple[str, list[ast.stmt]]]:
    """List the blocks inside a statement, by attribute."""
    inside = ("body", "orelse") if isinstance(statement, ast.For | ast.If | ast.While | ast.With) else ()
    return [(part, getattr(statement, part)) for part in inside if getattr(statement, part, None)]


def _is_names(target: ast.expr) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return all(map(_is_names, target.elts))
    return isinstance(target, ast.Name)


def _is_independent(statement: ast.stmt, run: Sequence[ast.stmt]) -> bool:
    """Whether a call reads nothing that others make, and they nothing that it makes."""
    if not (isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call) and all(map(_is_names, statement.targets))):
        return False
    made, own = set().union(*map(stored, run)), stored(statement)
    return made.isdisjoint(_names(statement)) and own.isdisjoint(set().union(*map(_names, run)))


def _names(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}


def stored(statement: ast.stmt) -> set[str]:
    """Name what a statement binds."""
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
