"""Sources and differences with colours, safe to stand in a page whatever they hold."""

from __future__ import annotations

import difflib

from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import DiffLexer, PythonLexer

LONGEST = 200_000
"""Characters that are coloured; what is longer stands plain."""


def python_html(source: str) -> Markup:
    """Colour Python."""
    return _html(source, PythonLexer())


def diff_html(text: str) -> Markup:
    """Colour a unified difference."""
    return _html(text, DiffLexer())


def difference(left: str, right: str, left_name: str, right_name: str) -> str:
    """Compare two sources line by line, as a unified difference."""
    return "".join(difflib.unified_diff(left.splitlines(True), right.splitlines(True), left_name, right_name))


def styles() -> str:
    """Give the colours for light pages and for dark ones, as CSS."""
    light, dark = (HtmlFormatter(style=name).get_style_defs(".code") for name in ("default", "monokai"))  # type: ignore[no-untyped-call]
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def _html(text: str, lexer: PythonLexer | DiffLexer) -> Markup:
    # a tab stop, so that long lines are scrolled to by keyboard
    if len(text) > LONGEST:
        return Markup('<pre tabindex="0">{}</pre>').format(text)
    coloured = highlight(text, lexer, HtmlFormatter(cssclass="code", wrapcode=True)).replace("<pre>", '<pre tabindex="0">', 1)
    return Markup(coloured)  # noqa: S704 - Pygments escapes what it colours
