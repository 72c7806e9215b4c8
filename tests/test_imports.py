"""Imports run one way: tools ← knowledge ← agents ← graphs ← kernelwright."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ORDER = ("tools", "knowledge", "agents", "graphs", "kernelwright")
FOREIGN_TO_TOOLS = {"langgraph", "langchain", "langchain_core", "langchain_openai", "openai", "chromadb", "sentence_transformers"}


def _imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
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
