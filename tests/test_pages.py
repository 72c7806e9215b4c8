"""What pages quote and list is what the code does: kernels, verdicts, tiers, defences, settings and the words of actions."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from agents.coder.modelled import choices_of
from agents.coder.traced import traced_graph
from agents.models.settings import ModelSettings
from kernelwright.cli.commands.explain import Stage
from tests.support.pages import FENCE, INLINE, ROOT, Page
from tools.actions import GUIDE
from tools.codegen import emit, pipeline
from tools.codegen.templates.shared.template import Template
from tools.evaluation.wire.defences import Defence
from tools.hardware import load_sheet
from tools.problems import load_problem
from tools.records import Tier, Verdict

DOCS = ROOT / "docs"


def blocks(path: Path, opening: str) -> list[str]:
    """The blocks of Python on a page that begin with some words, without spaces at their ends."""
    return [inner.strip() for mark, inner in FENCE.findall(path.read_text(encoding="utf-8")) if mark and inner.startswith(opening)]


def functions(source: str) -> list[str]:
    """The functions of a source, whatever its line breaks."""
    return [ast.dump(one) for one in ast.parse(source).body if isinstance(one, ast.FunctionDef)]


def written(problem: Path) -> list[str]:
    """The functions that the built-in coder writes first of an operator's file, for an H200."""
    loaded = load_problem(problem)
    return functions(emit(loaded, traced_graph(loaded), choices_of(loaded, load_sheet("h200"))[0].schedule).source)


def table(path: Path, heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, as cells."""
    text = path.read_text(encoding="utf-8").partition(f"{heading}\n")[2]
    rows = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert rows, heading
    return [[cell.strip() for cell in row.strip("|").split(" | ")] for row in rows[0].splitlines()[2:]]


def words(cell: str) -> list[str]:
    """The stretches of code in a cell."""
    return [inner for _, inner in INLINE.findall(cell)]


def test_the_kernel_in_the_readme_is_the_one_that_the_coder_writes() -> None:
    """Of the demo's softmax."""
    (kernel,) = blocks(ROOT / "README.md", "@triton.jit")
    assert functions(kernel)[0] in written(ROOT / "data" / "operators" / "softmax.py")


def test_the_kernel_on_the_coder_page_is_that_of_the_readme_s_operator(tmp_path: Path) -> None:
    """The example that a reader copies gives the kernel that the page shows."""
    (operator,) = blocks(ROOT / "README.md", "import torch")
    (kernel,) = blocks(DOCS / "coder.md", "@triton.jit")
    (tmp_path / "scaled_softplus.py").write_text(operator)
    assert functions(kernel)[0] in written(tmp_path / "scaled_softplus.py")


def test_every_verdict_and_tier_is_explained() -> None:
    """The page on evaluation has a row for each, and for nothing else."""
    rows = table(DOCS / "evaluation.md", "## Verdicts")
    assert sorted(name for row in rows for name in words(row[0])) == sorted(one.value for one in Verdict)
    assert sorted(name for row in table(DOCS / "evaluation.md", "## Tiers") for name in words(row[0])) == sorted(one.value for one in Tier)


def test_the_glossary_is_in_alphabetical_order() -> None:
    """Each word stands once, where a reader looks for it."""
    listed = [row[0].lower() for row in table(DOCS / "glossary.md", "# Glossary")]
    assert listed == sorted(set(listed))


@pytest.mark.parametrize("heading", ["### A:", "### B:", "### C:", "### D and E:"])
def test_defences_are_called_by_their_names(heading: str) -> None:
    """What stops an attack on the page on threats is a defence of the code."""
    page = (DOCS / "threats.md").read_text(encoding="utf-8")
    (full,) = re.findall(rf"^{heading}.*$", page, re.MULTILINE)
    named = {name for row in table(DOCS / "threats.md", full) for name in words(row[2])}
    assert sorted(named - {one.value for one in Defence} - {"INPUT_VIEWS"}) == []


def test_every_class_of_attack_in_the_suite_is_on_the_page() -> None:
    """Each class that a hostile kernel names has a row."""
    text = (DOCS / "threats.md").read_text(encoding="utf-8")
    for first, last in re.findall(r"([A-E]\d\d) to ([A-E]\d\d)", text):
        text += " ".join(f"{first[0]}{number:02}" for number in range(int(first[1:]), int(last[1:]) + 1))
    kernels = [path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "hacks" / "kernels").rglob("*.py")]
    classes = {name for kernel in kernels for name in re.findall(r"^Class: ([A-E]\d\d)", kernel, re.MULTILINE)}
    assert classes
    assert sorted(name for name in classes if name not in text) == []


def test_the_models_page_has_every_setting() -> None:
    """The table of `--model-set` names what there is, with its default."""
    rows = table(DOCS / "models.md", "## Settings")
    named = {name for row in rows for name in words(row[0])}
    assert named == set(ModelSettings.model_fields) - {"name", "check", "role_temperatures"}


def test_the_coder_page_speaks_the_words_of_actions() -> None:
    """Parameters and values in its tables are those of the action guide."""
    known = "\n".join(f"{one.name} = {one.values}" for meaning in GUIDE.values() for one in meaning.parameters)
    rows = [row for heading in ("## Actions", "## Products") for row in table(DOCS / "coder.md", heading)]
    named = {name for row in rows for cell in row[:2] for name in words(cell)} - {"BLOCK_…", "exact"}
    assert sorted(name for name in named if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", known)) == []


def test_the_codegen_page_has_every_stage_that_is_shown() -> None:
    """The table on reading `kernelwright explain` has the stages in their order."""
    (heading,) = re.findall(r"^## See what it does.*$", (DOCS / "codegen.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert [row[0] for row in table(DOCS / "codegen.md", heading)] == [one.value for one in Stage]


def test_the_codegen_page_has_every_member_of_a_template() -> None:
    """All but the two that say how host functions are called and what they are given."""
    named = {name for row in table(DOCS / "codegen.md", "## The template object") for name in words(row[0])}
    members = {name for name in vars(Template) if not name.startswith("_")} | set(Template.__annotations__)
    assert members - named == {"takes_numbers", "function"}
    assert named - members == set()


def test_the_codegen_page_has_the_pipeline() -> None:
    """Its stages are those of the pipeline, in their order."""
    stages = [row[0] for row in table(DOCS / "codegen.md", "## The pipeline")]
    assert stages == [f"`{one}`" for one in re.findall(r"^(\w+) +\w.* -> ", pipeline.__doc__ or "", re.MULTILINE)]


@pytest.mark.parametrize("page", ["CHANGELOG.md"])
def test_a_first_release_s_changelog_is_short(page: str) -> None:
    """At most forty lines of what a user gets."""
    assert len([line for line in Page(ROOT / page).text.splitlines() if line.startswith("* ")]) <= 40
