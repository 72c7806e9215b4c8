"""Imports run one way: tools ← knowledge ← agents ← graphs ← kernelwright, and in the generator from module down to ir."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ORDER = ("tools", "knowledge", "agents", "graphs", "kernelwright")
FOREIGN_TO_TOOLS = {"langgraph", "langchain", "langchain_core", "langchain_openai", "openai", "chromadb", "sentence_transformers"}
GENERATOR = {
    "ir": (),
    "rewrite": ("ir",),
    "lower": ("ir",),
    "templates": ("ir",),
    "trace": ("rewrite", "ir"),
    "schedule": ("templates", "rewrite", "lower", "ir"),
    "module": ("schedule", "templates", "rewrite", "lower", "ir"),
}
"""Packages of `tools.codegen`, and which others of them each may import."""


ImportStatement = ast.Import | ast.ImportFrom


@cache
def _statements(path: Path) -> tuple[tuple[ImportStatement, bool], ...]:
    """Import statements of a file, also those inside of functions, each with whether a type checker alone sees it."""
    return tuple(_below(ast.parse(path.read_text()), hidden=False))


def _below(node: ast.AST, *, hidden: bool) -> Iterator[tuple[ImportStatement, bool]]:
    for part in ("body", "handlers", "orelse", "finalbody", "cases"):
        for child in getattr(node, part, ()):
            if isinstance(child, ast.Import | ast.ImportFrom):
                yield child, hidden
            else:
                yield from _below(child, hidden=hidden or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)))


@cache
def _imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node, _ in _statements(path):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif node.module:
            assert node.level == 0, f"{path}: imports are absolute"
            names.add(node.module.partition(".")[0])
    return names


@pytest.mark.parametrize("folder", ORDER)
def test_a_folder_imports_only_from_itself_and_those_before_it(folder: str) -> None:
    """No module imports from a folder that comes later in the order, not even inside a function."""
    later = set(ORDER[ORDER.index(folder) + 1 :])
    files = list((ROOT / folder).rglob("*.py"))
    assert files
    wrong = {str(path): _imports(path) & later for path in files if _imports(path) & later}
    assert not wrong


def test_tools_need_no_agent_library() -> None:
    """An evaluation worker can import all of `tools` without LangGraph, LangChain, Chroma or an embedding library."""
    wrong = {str(path): _imports(path) & FOREIGN_TO_TOOLS for path in (ROOT / "tools").rglob("*.py") if _imports(path) & FOREIGN_TO_TOOLS}
    assert not wrong


def test_data_holds_no_module_of_ours() -> None:
    """Nothing imports `data`: it is read as files."""
    files = [path for folder in ORDER for path in (ROOT / folder).rglob("*.py")]
    assert not [str(path) for path in files if "data" in _imports(path)]


def _modules() -> dict[str, Path]:
    """Files of the five packages by dotted name."""
    files = (path for folder in ORDER for path in (ROOT / folder).rglob("*.py"))
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in files}


def _imported(path: Path, modules: Container[str]) -> set[str]:
    """Modules of ours that a file imports, but for what only a type checker sees."""
    found: set[str] = set()
    for node, hidden in _statements(path):
        if isinstance(node, ast.Import) and not hidden:
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not hidden:
            full = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in modules else str(node.module) for name in full.values()}
    return {name for name in found if name in modules}


@cache
def _graph() -> dict[str, set[str]]:
    modules = _modules()
    return {name: _imported(path, modules) - {name} for name, path in modules.items()}


def test_no_file_leads_back_to_itself_by_its_imports() -> None:
    """There is no cycle of imports between files, not even by an import inside a function."""
    # raises CycleError with the files of one
    TopologicalSorter(_graph()).prepare()


def test_no_two_folders_import_each_other() -> None:
    """Between two folders, at whatever depth, imports run one way: the files of one never import files of the other and back."""
    modules = _modules()
    arrows: dict[tuple[Path, Path], str] = {}
    for name, found in _graph().items():
        for other in found:
            arrows[modules[name].parent, modules[other].parent] = f"{name} imports {other}"
    pairs = {f"{said}; {arrows[there, here]}" for (here, there), said in arrows.items() if here != there and (there, here) in arrows}
    assert not pairs


@pytest.mark.parametrize("package", GENERATOR)
def test_a_package_of_the_generator_imports_only_what_lies_below_it(package: str) -> None:
    """Module → schedule → templates, rewrite, lower → ir, and trace → rewrite."""
    members = [name for name in _graph() if _generator_package(name) == package]
    assert len(members) > 1
    allowed = {package, *GENERATOR[package]}
    arrows = {(name, other) for name in members for other in _graph()[name] if other.startswith("tools.codegen")}
    assert not {(name, other) for name, other in arrows if _generator_package(other) not in allowed}


def test_every_package_of_the_generator_has_its_place() -> None:
    """A new folder under `tools/codegen` says here what it may import."""
    assert {path.parent.name for path in (ROOT / "tools" / "codegen").glob("*/__init__.py")} == set(GENERATOR)


def _generator_package(name: str) -> str:
    """Name the package of the generator that a module is in; empty for others, and for the generator's own front."""
    front, _, rest = name.partition("tools.codegen.")
    return rest.partition(".")[0] if rest and not front else ""


EVALUATOR = {
    "wire": set(),
    "sandbox": {"wire"},
    "processes": {"wire", "sandbox"},
    "trusted": {"wire"},
    "untrusted": {"wire"},
    "supervisor": {"wire", "sandbox", "processes"},
}
"""By folder of `tools/evaluation`: which of the others it may import. Nobody imports what is trusted or untrusted: zygotes do, by name."""


@pytest.mark.parametrize("folder", EVALUATOR)
def test_the_evaluators_trusted_side_imports_no_untrusted_code(folder: str) -> None:
    """Trusted and untrusted code share `wire` alone, the supervisor imports neither, and none of them the pools above."""
    root = "tools.evaluation"
    files = list((ROOT / "tools" / "evaluation" / folder).rglob("*.py"))
    assert files
    wrong = {str(path): found for path in files if (found := _modules_below(path, root) - EVALUATOR[folder] - {folder})}
    assert not wrong


def test_profiling_imports_no_evaluator() -> None:
    """Profiles and machine code are read by the evaluator, and take records alone of it."""
    files = [path for folder in ("profiling", "machine_code", "records") for path in (ROOT / "tools" / folder).rglob("*.py")]
    assert not [str(path) for path in files if _modules_below(path, "tools.evaluation")]


def _modules_below(path: Path, package: str) -> set[str]:
    """Name what a file imports of a package, one level down; the package itself is an empty name."""
    found: set[str] = set()
    for node, _ in _statements(path):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif node.module:
            found.update(f"{node.module}.{alias.name}" if node.module == package else node.module for alias in node.names)
    return {name.removeprefix(package).lstrip(".").partition(".")[0] for name in found if f"{name}.".startswith(f"{package}.")}


@pytest.mark.parametrize("folder", [*ORDER, "benchmarks", "scripts", "tests", "docs", "data"])
def test_no_folder_holds_more_than_thirty_files(folder: str) -> None:
    """A reader sees a folder's files at one glance."""
    places = [ROOT / folder, *(path for path in (ROOT / folder).rglob("*") if path.is_dir() and path.name != "__pycache__")]
    assert {str(place) for place in places if sum(path.is_file() for path in place.iterdir()) > 30} == set()
