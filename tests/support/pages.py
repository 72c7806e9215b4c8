"""Reads the project's Markdown pages: their prose, links, code, and what they name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```+|~~~+)[^\n]*\n(.*?)^\1", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"(`+)(.+?)\1", re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FOOTER = "\n---\n"
"""A line that parts a page from its footer, where dates and commits stand."""
ITEM = re.compile(r"^\s*(?:[*-]|\d+\.)\s+")
NOT_PROSE = re.compile(r"^\s*(?:\||#|<!--|>?\s*$)")
SENTENCE_END = re.compile(r"[.!?][\"')*]*\s+")
FIGURE = re.compile(r"(?<![\w.,#-])\d[\d.,]*")
STAMP = re.compile(r"\b20\d\d-\d\d-\d\d\b|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,40}\b")
FOLDERS = ("agents", "benchmarks", "data", "docs", "graphs", "kernelwright", "knowledge", "scripts", "tests", "tools")
PATH = re.compile(rf"(?<![\w./~-])(?:{'|'.join(FOLDERS)})/[\w./*<>{{}},-]*")
MODULE = re.compile(rf"(?<![\w./~-])(?:{'|'.join(FOLDERS)})(?:\.[a-z_]\w*)+")
COMMAND = re.compile(r"(?:^|[\s(]|bin/)kernelwright +([a-z]+)(?: +([a-z]+))?([^|;#\n]*)", re.MULTILINE)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z_-]*")


@dataclass(frozen=True)
class Page:
    """One Markdown file of the project."""

    path: Path
    """Where it lies."""

    @cached_property
    def text(self) -> str:
        """All of it."""
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def words(self) -> int:
        """How many words it has, code and tables among them."""
        return len(self.text.split())

    @cached_property
    def body(self) -> str:
        """What stands before its footer, without code blocks."""
        return FENCE.sub("", self.text).rpartition(FOOTER)[0] or FENCE.sub("", self.text)

    @cached_property
    def links(self) -> list[tuple[str, Path, str]]:
        """Each relative link: as written, the file it names, its anchor."""
        written = [target for _, target in LINK.findall(FENCE.sub("", self.text)) if not re.match(r"https?:|mailto:", target)]
        parts = [(link, *link.partition("#")[::2]) for link in written]
        return [(link, (self.path.parent / file).resolve() if file else self.path, anchor) for link, file, anchor in parts]

    @cached_property
    def anchors(self) -> set[str]:
        """The anchors of its headings, as GitHub makes them."""
        return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in HEADING.findall(FENCE.sub("", self.text))}

    @cached_property
    def paragraphs(self) -> list[str]:
        """Its prose, a paragraph or an item of a list each; a stretch of code is one word, a link its text."""
        found: list[list[str]] = [[]]
        for line in LINK.sub(r"\1", INLINE.sub("code", self.body)).splitlines():
            if NOT_PROSE.match(line) or ITEM.match(line):
                found.append([])
            if not NOT_PROSE.match(line):
                found[-1].append(ITEM.sub("", line).strip())
        return [" ".join(lines) for lines in found if lines]

    @cached_property
    def sentences(self) -> list[str]:
        """The sentences of its prose."""
        return [one for paragraph in self.paragraphs for one in SENTENCE_END.split(paragraph) if one]

    @cached_property
    def code(self) -> list[str]:
        """Each stretch and each block of code."""
        return [inner for _, inner in INLINE.findall(FENCE.sub("", self.text))] + [inner for _, inner in FENCE.findall(self.text)]

    @cached_property
    def named_files(self) -> set[str]:
        """The files, folders and modules of the project that its text names; a name in capitals stands for any."""
        text = LINK.sub(r"\1", self.text)
        paths = {one.rstrip(".,/") for one in PATH.findall(text)}
        modules = {one.replace(".", "/") for code in self.code for one in MODULE.findall(code) if not one.endswith((".md", ".py", ".json"))}
        return {one for one in paths | modules if not re.search(r"[A-Z<]", one.replace("README", ""))}

    @cached_property
    def commands(self) -> list[tuple[str, str, list[str]]]:
        """Each command line of kernelwright in its code: the command, the word after it, and its options."""
        lines = [line for code in self.code for line in code.replace("\\\n", " ").splitlines()]
        return [(first, second, OPTION.findall(rest)) for line in lines for first, second, rest in COMMAND.findall(line)]

    @cached_property
    def bare_options(self) -> set[str]:
        """The options that stand in its text by themselves, without a command."""
        return {one for _, inner in INLINE.findall(FENCE.sub("", self.text)) if inner.startswith("--") for one in OPTION.findall(inner)}


PAGES = [Page(path) for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])]
"""Every page a reader meets."""
