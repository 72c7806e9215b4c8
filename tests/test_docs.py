"""The pages: what they point to exists, and all of them can be found from the README."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
LINK = re.compile(r"\[[^\]]*\]\((?!https?:)([^)\s]+)\)")
CODE = re.compile(r"^(```+|~~~+).*?^\1", re.DOTALL | re.MULTILINE)


def links(page: Path) -> list[tuple[str, Path, str]]:
    """Each relative link of a page: as written, the file it names, its anchor."""
    found = LINK.findall(CODE.sub("", page.read_text(encoding="utf-8")))
    parts = [(link, *link.partition("#")[::2]) for link in found]
    return [(link, (page.parent / file).resolve() if file else page, anchor) for link, file, anchor in parts]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", CODE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    """A relative link names a file that is there, and a heading that it has."""
    for link, file, anchor in links(page):
        assert file.exists(), link
        assert not anchor or anchor in anchors(file), link


def test_every_page_can_be_reached_from_the_readme() -> None:
    """No page of docs is left where no link leads."""
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page.suffix == ".md" and page not in seen:
            seen.add(page)
            waiting += [file for _, file, _ in links(page) if file.is_file()]
    assert sorted(page for page in (ROOT / "docs").rglob("*.md") if page not in seen) == []


def test_every_command_is_on_a_page() -> None:
    """Each command of the command line is shown in the README or in docs, as it is typed."""
    from kernelwright.cli.app import app

    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES if page.name != "CHANGELOG.md")
    names = [command.name for command in app.registered_commands] + [group.name for group in app.registered_groups]
    assert [name for name in names if f"kernelwright {name}" not in text] == []
