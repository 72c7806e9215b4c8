"""What can be known of a user's file without running it: its form, its entry, its functions."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from tools.errors import UserError
from tools.nearest import nearest
from tools.records import ProblemForm
from tools.syntax import parsed

EXPECTED = (
    "Give the file either a class `Model` (nn.Module) with `get_inputs()` and, where its constructor takes arguments, "
    "`get_init_inputs()`; or one public function with `example_inputs()` that returns a tuple of its arguments."
)
"""The two forms a file may have, for messages."""

INPUT_MAKERS = ("get_inputs", "get_init_inputs", "example_inputs")
"""Names with a meaning of their own; never the reference itself."""


@dataclass(frozen=True)
class Recognised:
    """The form of a file and the name of the reference in it."""

    form: ProblemForm
    entry: str

    @property
    def makers(self) -> tuple[str, ...]:
        """The functions of the file that make inputs in this form."""
        return ("example_inputs",) if self.form is ProblemForm.FUNCTION else ("get_inputs", "get_init_inputs")


def read_source(path: Path) -> str:
    """Read a user's Python file; what is no readable Python file raises UserError."""
    if not path.exists():
        beside = [str(one) for one in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise UserError(f"There is no file {path}.", nearest(str(path), beside).strip() or "Check the path.")
    if path.is_dir():
        raise UserError(f"{path} is a folder, not a file.", "Name one .py file; a folder of them is a suite, for `kernelwright bench`.")
    if path.suffix != ".py":
        raise UserError(f"{path} is not a Python file.", "Name a file that ends in .py.")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text (byte {error.start}).", "Save it as UTF-8.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.", "Make it readable.") from error


def parse(source: str, title: str) -> ast.Module:
    """Parse a source; a syntax error raises UserError with its line."""
    try:
        return parsed(source)
    except SyntaxError as error:
        raise UserError(f"{title} has a syntax error in line {error.lineno}: {error.msg}.", "Mend that line.") from error
    except ValueError as error:
        raise UserError(f"{title} is not Python source: {error}.", "Give a text file of Python source.") from error


def recognise(tree: ast.Module, title: str, stem: str, entry: str | None = None) -> Recognised:
    """Tell which form a file has and what its reference is called; neither form raises UserError."""
    classes = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    public = sorted(name for name in functions if not name.startswith("_") and name not in INPUT_MAKERS)
    if entry is not None and entry not in classes | functions:
        known = ", ".join(sorted(classes) + public) or "none"
        raise UserError(f"{title} defines no class or function {entry!r}.", f"It defines: {known}.")
    if entry in functions or (entry is None and "Model" not in classes and "example_inputs" in functions):
        if "example_inputs" not in functions:
            raise UserError(f"{title} defines {entry}() but no example_inputs().", EXPECTED)
        return Recognised(ProblemForm.FUNCTION, entry or _only_function(public, _called_by_others(tree, public), title, stem))
    return _recognise_class(entry or "Model", classes, functions, title)


def entry_to_name(source: str, file: str, entry: str) -> str:
    """Give the reference's name where `file` does not tell it by itself, so that a command has to say it; else nothing."""
    try:
        known = recognise(parse(source, file), file, Path(file).stem).entry if file else entry
    except UserError:
        known = ""
    return "" if known == entry else entry


def _recognise_class(name: str, classes: set[str], functions: set[str], title: str) -> Recognised:
    if name in classes and "get_inputs" in functions:
        return Recognised(ProblemForm.KERNELBENCH, name)
    if name in classes:
        raise UserError(f"{title} defines the class {name} but no get_inputs().", EXPECTED)
    if "get_inputs" in functions:
        raise UserError(f"{title} defines get_inputs() but no class {name}.", EXPECTED)
    raise UserError(f"{title} holds no problem: neither a class Model nor example_inputs().", EXPECTED)


def _only_function(public: list[str], helpers: set[str], title: str, stem: str) -> str:
    if not public:
        raise UserError(f"{title} defines example_inputs() but no public function to go with it.", EXPECTED)
    if len(public) > 1 and stem in public:
        return stem
    left = [name for name in public if name not in helpers] if len(public) > 1 else public
    if len(left) != 1:
        raise UserError(
            f"{title} defines several public functions: {', '.join(public)}.", "Name one with --entry, or call one like the file."
        )
    return left[0]


def _called_by_others(tree: ast.Module, public: list[str]) -> set[str]:
    """List the public functions that something else in the file names: helpers of what is meant."""
    found: set[str] = set()
    for node in tree.body:
        names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
        bound = {each.id for each in names if not isinstance(each.ctx, ast.Load)} | {
            each.arg for each in ast.walk(node) if isinstance(each, ast.arg)
        }
        found |= {each.id for each in names} - bound - {getattr(node, "name", "")}
    return found & set(public)
