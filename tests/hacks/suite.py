"""The hostile kernels: what each is, and what must become of it. Its twin is the same file with `HOSTILE = False`."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "kernels"
SWITCH = "HOSTILE = True"


@dataclass(frozen=True)
class Hack:
    """One hostile kernel."""

    name: str
    hostile: str
    """Its source."""
    attack: str
    """Class of attack."""
    verdicts: tuple[str, ...]
    """Verdicts that count as caught; which of several depends on what gives way first."""
    rule: str | None
    defence: str
    """What must catch it, no static check among it."""

    @property
    def honest(self) -> str:
        """The same source without the attack."""
        return self.hostile.replace(SWITCH, "HOSTILE = False")


def read(path: Path) -> Hack:
    """Read a hack's header."""
    source = path.read_text()
    doc = ast.get_docstring(ast.parse(source)) or ""
    fields = dict(line.split(": ", 1) for line in doc.splitlines() if ": " in line)
    words = fields["Verdict"].split()
    return Hack(
        name=path.stem,
        hostile=source,
        attack=fields["Class"],
        verdicts=tuple(word for word in words if word.isupper()),
        rule=next((word for word in words if not word.isupper()), None),
        defence=fields["Caught by"],
    )


def hacks() -> list[Hack]:
    """List all of them by name."""
    return [read(path) for path in sorted(FOLDER.glob("*.py"))]
