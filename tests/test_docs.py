"""The pages: short, plain, reachable from the README, and true of the code that they name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer

from kernelwright.cli.app import app
from tests.support.pages import FIGURE, FOLDERS, INLINE, PAGES, ROOT, STAMP, Page

MOST_WORDS = 40_000
"""Of all pages together: what a reader can be asked to look through."""
FOREIGN = frozenset(
    {"--allow-blocking", "--delete", "--expt-extended-lambda", "--expt-relaxed-constexpr", "--kernel-config", "--signal", "--use_fast_math"}
)
"""Options of langgraph, rsync, nvcc and sbatch."""
FILES = [file.relative_to(ROOT).as_posix() for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
READERS = frozenset({"my_operator.py", "my_kernel.py", "op.py", "kernel.py", "problem.py", "root.py"})
"""Files of the reader's, of a run or of a bundle."""
COMMANDS = typer.main.get_group(app).commands


def name(page: Page) -> str:
    """A page's path in the project."""
    return page.path.relative_to(ROOT).as_posix()


def below(command: object) -> dict[str, object]:
    """The commands below one that groups others."""
    return dict(command.commands) if isinstance(command, typer.core.TyperGroup) else {}


def options(command: object) -> set[str]:
    """The options of a command, and of the commands below it."""
    own = {one for each in getattr(command, "params", []) for one in (*each.opts, *each.secondary_opts)}
    return {"--help", "--version", "--debug"} | own.union(*map(options, below(command).values()))


def exists(path: str) -> bool:
    """Whether a path, a pattern of paths, or a module of the project (or a name in one) is there."""
    forms = re.match(r"(.*)\{(.*)\}(.*)", path)
    if forms:
        return all(exists(forms[1] + one + forms[3]) for one in forms[2].split(","))
    if any(ROOT.glob(path)) or any(ROOT.glob(f"{path}.py")):
        return True
    folder, _, inside = path.rpartition("/")
    holders = [one for one in (ROOT / f"{folder}.py", ROOT / folder / "__init__.py") if one.is_file()]
    return any(re.search(rf"\b{inside}\b", one.read_text(encoding="utf-8")) for one in holders)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_link_leads_somewhere(page: Page) -> None:
    """A relative link names a file that is there, and a heading that it has."""
    for link, file, anchor in page.links:
        assert file.exists(), link
        assert not anchor or anchor in Page(file).anchors, link


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_sentence_is_longer_than_thirty_words(page: Page) -> None:
    """A sentence can be read in one breath; code in a sentence counts as one word."""
    assert [one for one in page.sentences if len(one.split()) > 30] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_no_paragraph_has_more_than_three_figures(page: Page) -> None:
    """More figures than three stand in a table."""
    assert [one for one in page.paragraphs if len(FIGURE.findall(one)) > 3] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_dates_and_commits_stand_in_a_footer(page: Page) -> None:
    """Prose says what holds; when and by which commit it was seen stands below the page's last rule."""
    assert [one for one in page.paragraphs if STAMP.search(one)] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_file_that_a_page_names_is_there(page: Page) -> None:
    """A path or a module on a page is one of the project."""
    assert sorted(one for one in page.named_files if not exists(one)) == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_command_and_option_on_a_page_is_there(page: Page) -> None:
    """What a reader copies from a page is understood by the command line."""
    for command, second, used in page.commands:
        assert command in COMMANDS, f"kernelwright {command}"
        found = COMMANDS[command]
        if command == "knowledge" and second:
            assert second in below(found), f"kernelwright {command} {second}"
        assert sorted(set(used) - options(found)) == [], f"kernelwright {command}"
    ours = set[str]().union(*map(options, COMMANDS.values()))
    scripts = "\n".join(one.read_text() for one in [*ROOT.glob("benchmarks/**/*.py"), *ROOT.glob("scripts/**/*.py")])
    assert sorted(one for one in page.bare_options - ours - FOREIGN if f'"{one}"' not in scripts) == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_every_file_named_by_the_end_of_its_path_is_there(page: Page) -> None:
    """A path such as `trusted/oracle.py`, or a file's name in code, is that of a file that is there; a footer may name what was."""
    ends = {one for _, one in INLINE.findall(page.body) if re.fullmatch(r"[a-z_][\w/]*\.py", one)}
    assert sorted(one for one in ends - READERS if not any(f"/{file}".endswith(f"/{one}") for file in FILES)) == []


def test_all_pages_together_are_short() -> None:
    """Code and tables are counted, too."""
    assert sum(page.words for page in PAGES) <= MOST_WORDS


def test_every_page_can_be_reached_from_the_readme() -> None:
    """No page of docs is left where no link leads."""
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        path = waiting.pop()
        if path.suffix == ".md" and path not in seen:
            seen.add(path)
            waiting += [file for _, file, _ in Page(path).links if file.is_file()]
    assert sorted(page.path for page in PAGES if page.path.is_relative_to(ROOT / "docs") and page.path not in seen) == []


def test_every_command_is_on_a_page() -> None:
    """Each command of the command line is shown in the README or in docs, as it is typed."""
    text = "\n".join(page.text for page in PAGES if page.path.name != "CHANGELOG.md")
    assert [command for command in COMMANDS if f"kernelwright {command}" not in text] == []
