"""The hostile kernels: what each is, and what must become of it. Its twin is the same file with `HOSTILE = False`."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from tools.evaluation.processes.log import TAIL_BYTES
from tools.evaluation.supervisor.timed.plausibility import AGREEMENT_US
from tools.evaluation.wire.defences import Defence
from tools.records import Evaluation

FOLDER = Path(__file__).parent / "kernels"
SWITCH = "HOSTILE = True"
NOBODY = "no single defence"
CHARGED = 0.9
"""The least share of a call's true time that must be in its figure, but for what short kernels are allowed."""
_WORK = re.compile(r"^WORK_US = (\d+)$", re.MULTILINE)


def least_us(true_us: float) -> float:
    """The least figure of a call that truly takes so long: what is hidden from it is caught, or no more than is allowed."""
    return CHARGED * true_us - AGREEMENT_US


@dataclass(frozen=True)
class Hack:
    """One hostile kernel."""

    name: str
    hostile: str
    """Its source."""
    summary: str
    attack: str
    """Class of attack."""
    verdicts: tuple[str, ...]
    """Verdicts that count as caught; which of several depends on what gives way first."""
    rule: str | None
    defence: str
    """What must catch it, no static check among it."""
    needed: frozenset[Defence]
    """Defences each of which it takes to catch it; empty where several could."""
    provenance: str
    """What it must be called; `authored` where its verdict alone matters."""
    limit_s: float
    """Time limit of its own, seconds; 0 means the suite's."""
    gpu: bool
    """Needs a GPU."""
    size: str
    """Of the problem that it is judged on: `tiny`, `large`, or empty for what fits the machine."""
    work_us: int
    """What a call works beside what it shows, microseconds, by the `WORK_US` of its source; 0 where it hides none."""
    charged: str
    """Whose time that must be in: `call` or `packing`."""

    @property
    def honest(self) -> str:
        """The same source without the attack."""
        return self.hostile.replace(SWITCH, "HOSTILE = False")

    @property
    def program(self) -> str:
        """What is left of the twin once its switch is off: no docstring, no import, no branch that is never taken."""
        tree = ast.parse(self.honest)
        tree.body = [node for node in tree.body[1:] if not isinstance(node, ast.Import | ast.ImportFrom)]
        return ast.unparse(_Folding().visit(tree))

    def working(self, work_us: int) -> Self:
        """Give the same kernel with that much work."""
        name = f"{self.name}-{work_us}us"
        return replace(self, name=name, hostile=_WORK.sub(f"WORK_US = {work_us}", self.hostile), work_us=work_us)

    def figure_us(self, found: Evaluation) -> float:
        """The published time that must have its work in it."""
        return (found.packing_us if self.charged == "packing" else found.time_us) or 0.0

    def is_caught(self, found: Evaluation) -> bool:
        """Whether its evaluation is what its header asks for."""
        if found.verdict not in self.verdicts or len(found.log) > TAIL_BYTES + 8:
            return False
        if self.work_us:
            return not self.gets_through(found)
        if found.verdict == "PASS":
            return found.provenance == self.provenance
        return found.verdict != "CHEATED" or found.rule == self.rule

    def gets_through(self, found: Evaluation) -> bool:
        """Whether it got what it wanted: a PASS without its work, or in its own name where that is the lie, or room for all it prints."""
        if self.work_us:
            return found.verdict == "PASS" and self.figure_us(found) < least_us(self.work_us)
        claimed = self.provenance == "authored" or found.provenance == "authored"
        return (found.verdict == "PASS" and claimed) or len(found.log) > TAIL_BYTES + 8


class _Folding(ast.NodeTransformer):
    """Takes branches away that HOSTILE guards."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        """Keep the other branch."""
        self.generic_visit(node)
        guard = node.test.values[0] if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.And) else node.test
        return node.orelse if isinstance(guard, ast.Name) and guard.id == "HOSTILE" else node


def distinct(there: list[Hack]) -> list[Hack]:
    """Choose one hack for each program that its honest twin comes to."""
    return list({hack.program: hack for hack in reversed(there)}.values())[::-1]


def read(path: Path) -> Hack:
    """Read a hack's header."""
    source = path.read_text()
    doc = ast.get_docstring(ast.parse(source)) or ""
    fields = dict(line.split(": ", 1) for line in doc.splitlines()[1:] if ": " in line)
    words = fields["Verdict"].split()
    needed, work = fields["Let through without"], _WORK.search(source)
    return Hack(
        name=path.stem,
        hostile=source,
        summary=doc.splitlines()[0],
        attack=fields["Class"],
        verdicts=tuple(word for word in words if word.isupper()),
        rule=next((word for word in words if not word.isupper()), None),
        defence=fields["Caught by"],
        needed=frozenset() if needed == NOBODY else frozenset(Defence(name) for name in needed.split(", ")),
        provenance=fields.get("Provenance", "authored"),
        limit_s=float(fields.get("Time limit", 0)),
        gpu=fields.get("Runs on") == "gpu",
        size=fields.get("Problem", ""),
        work_us=int(work[1]) if work else 0,
        charged=fields.get("Charged", "call"),
    )


def bystander(path: Path) -> Hack:
    """Take an honest kernel that has no hostile twin for one of both."""
    source = path.read_text()
    work = _WORK.search(source)
    return Hack(
        name=path.stem,
        hostile=source,
        summary="",
        attack="",
        verdicts=("PASS",),
        rule=None,
        defence="",
        needed=frozenset(),
        provenance="authored",
        limit_s=0,
        gpu=True,
        size="tiny",
        work_us=int(work[1]) if work else 0,
        charged="call",
    )


def hacks(*, gpu: bool = False) -> list[Hack]:
    """List those that run on a processor, by name; with `gpu` all of them."""
    return [hack for hack in map(read, sorted(FOLDER.glob("*/*.py"))) if gpu or not hack.gpu]
