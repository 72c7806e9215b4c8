"""The world model's tree: decisions taken and decisions open, changed by validated edits only."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tools.records import ROOT, Action, Record

TOP = 0
"""The dummy root: the reference."""
MOST_INSERTS = 3
"""New nodes of one edit round below one node."""
MOST_OPEN = 32
"""Open nodes kept in all: what the tree may grow to is bounded by the evaluations and this."""


class Node(Record):
    """One decision."""

    id: int
    parent: int
    action: Action | None
    """What the decision does to its parent's solution; None for the root, and for a node that a split made."""
    state: Literal["open", "closed", "failed"] = "open"
    """open: not tried. closed: solved, its solution never changes. failed: tried and too hard."""
    solution: str = ""
    """Best candidate of its cycle."""
    score: float = Field(default=0.0, ge=0, le=10)
    """How promising, from 0 to 10."""
    gain: float = Field(default=1.0, gt=0)
    """Expected parent time over child time; measured, once it is closed."""
    confidence: float = Field(default=0.3, ge=0, le=1)
    difficulty: int = Field(default=2, ge=1, le=5)


class Insert(Record):
    """Open a new decision below a solved one."""

    edit: Literal["insert"] = "insert"
    parent: int
    action: Action
    score: float = Field(ge=0, le=10)
    gain: float = Field(gt=0)
    difficulty: int = Field(ge=1, le=5)


class Update(Record):
    """Change what is believed of an open decision."""

    edit: Literal["update"] = "update"
    node: int
    score: float = Field(ge=0, le=10)
    gain: float = Field(gt=0)
    confidence: float = Field(ge=0, le=1)


class Split(Record):
    """Make a second solution of a solved decision a decision of its own, beside it."""

    edit: Literal["split"] = "split"
    node: int
    solution: str
    gain: float = Field(gt=0)


class Adopt(Record):
    """Make a right version that no decision stands for, a by-product of refinement, a decision of its own below the root."""

    edit: Literal["adopt"] = "adopt"
    solution: str
    gain: float = Field(gt=0)


class Prune(Record):
    """Drop an open decision."""

    edit: Literal["prune"] = "prune"
    node: int


Edit = Insert | Update | Split | Adopt | Prune


class WorldTree(Record):
    """All decisions of one run."""

    nodes: tuple[Node, ...] = (Node(id=TOP, parent=-1, action=None, state="closed", solution=ROOT, confidence=1.0),)
    last: int = TOP
    """Highest id given; a pruned id is never given again."""

    def node(self, number: int) -> Node | None:
        """Find a node by id."""
        return next((one for one in self.nodes if one.id == number), None)

    def children(self, number: int) -> list[Node]:
        """Nodes below one."""
        return [one for one in self.nodes if one.parent == number]

    def solution(self, number: int) -> str:
        """Candidate that a node stands for; empty where it has none."""
        found = self.node(number)
        return found.solution if found else ""

    def frontier(self) -> list[Node]:
        """Open nodes below a solution, in the order in which they are tried: easy ones where there are any, best first."""
        ready = [one for one in self.nodes if one.state == "open" and self.solution(one.parent)]
        easy = [one for one in ready if one.difficulty < 5]
        return sorted(easy or ready, key=lambda one: (-one.score, one.difficulty, -one.gain, one.id))

    def concluded(self, number: int, solution: str, gain: float) -> WorldTree:
        """Close an open node with what its cycle found; without a solution it failed."""
        found = self.node(number)
        if found is None or found.state != "open":
            raise ValueError(f"node {number} is not open")
        if solution:
            return self._with(found.model_copy(update={"state": "closed", "solution": solution, "gain": gain, "confidence": 1.0}))
        return self._with(found.model_copy(update={"state": "failed", "confidence": 1.0}))

    def edited(self, edit: Edit) -> WorldTree:
        """Apply one edit; ValueError with the fault where it is not valid, and the tree is as it was."""
        fault = self.fault(edit)
        if fault:
            raise ValueError(fault)
        if isinstance(edit, Insert):
            new = Node(id=self.last + 1, **edit.model_dump(exclude={"edit", "action"}), action=edit.action)
            return WorldTree(nodes=(*self.nodes, new), last=new.id)
        if isinstance(edit, Adopt):
            new = Node(id=self.last + 1, parent=TOP, action=None, state="closed", solution=edit.solution, gain=edit.gain, confidence=1.0)
            return WorldTree(nodes=(*self.nodes, new), last=new.id)
        if isinstance(edit, Prune):
            return WorldTree(nodes=tuple(one for one in self.nodes if one.id != edit.node), last=self.last)
        found = self.node(edit.node)
        assert found is not None
        if isinstance(edit, Split):
            twin = found.model_copy(update={"id": self.last + 1, "action": None, "solution": edit.solution, "gain": edit.gain})
            return WorldTree(nodes=(*self.nodes, twin), last=twin.id)
        return self._with(found.model_copy(update=edit.model_dump(exclude={"edit", "node"})))

    def fault(self, edit: Edit) -> str:
        """Say why an edit is not valid; empty where it is."""
        if isinstance(edit, Adopt):
            return self._claim_fault(edit.solution)
        number = edit.parent if isinstance(edit, Insert) else edit.node
        found = self.node(number)
        if found is None:
            return f"there is no node {number}"
        if isinstance(edit, Insert):
            return self._insert_fault(found, edit)
        return self._split_fault(found, edit) if isinstance(edit, Split) else self._open_fault(found, edit)

    def _open_fault(self, found: Node, edit: Update | Prune) -> str:
        if found.state != "open":
            return f"node {found.id} is {found.state}: only open nodes may be changed or pruned"
        return f"node {found.id} is no leaf" if isinstance(edit, Prune) and self.children(found.id) else ""

    def _insert_fault(self, parent: Node, edit: Insert) -> str:
        if not parent.solution:
            return f"node {parent.id} has no solution to build on"
        children = self.children(parent.id)
        if any(one.action and one.action.id == edit.action.id for one in children):
            return f"node {parent.id} has this decision already"
        if sum(one.state == "open" for one in children) >= MOST_INSERTS:
            return f"node {parent.id} has {MOST_INSERTS} open decisions already"
        if sum(one.state == "open" for one in self.nodes) >= MOST_OPEN:
            return f"the tree has {MOST_OPEN} open decisions already"
        return ""

    def _split_fault(self, found: Node, edit: Split) -> str:
        if found.state != "closed" or found.id == TOP:
            return f"node {found.id} has no solution of its own to split"
        return self._claim_fault(edit.solution)

    def _claim_fault(self, solution: str) -> str:
        taken = any(one.solution == solution for one in self.nodes)
        return "a node needs a solution" if not solution else f"solution {solution} is a node's already" if taken else ""

    def _with(self, new: Node) -> WorldTree:
        return WorldTree(nodes=tuple(new if one.id == new.id else one for one in self.nodes), last=self.last)
