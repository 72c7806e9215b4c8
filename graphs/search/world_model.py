"""World-model search (after K-Search): a persistent tree of decisions, refined locally, then edited by what was measured."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from agents.planner.world import Ended, TreeEdits
from graphs.search.archive import Offer
from graphs.search.protocol import Ask, Told
from graphs.search.tactic import Tactic, View
from graphs.search.wishes import EditWish
from graphs.search.world_asked import made
from graphs.search.world_edits import beliefs, overflow, proposals
from graphs.search.world_tree import TOP, Adopt, Edit, Node, Prune, Split, WorldTree
from tools.records import ROOT, Record, Verdict

OPENING = "edit open"
"""Name of the edit that opens the tree."""


class WorldOptions(Record):
    """Settings of world-model search."""

    stagnation: int = Field(default=3, ge=1)
    """Attempts in a row on one decision that bring nothing before its cycle ends; the paper has 7, with 120 evaluations."""
    inserts: int = Field(default=3, ge=1, le=3)
    """Decisions opened below a solution at once."""
    split_within: float = Field(default=0.05, ge=0)
    """A second solution of another strategy within this share of the best becomes a decision of its own."""


class Cycle(Record):
    """Local refinement of one decision."""

    node: int
    best: str = ""
    """Best right candidate of the cycle; empty while none passed."""
    second: str = ""
    """Best one of another strategy signature."""
    stale: int = 0
    """Attempts in a row that brought nothing."""
    spent: bool = False
    """The planner has nothing more for this decision."""


class WorldState(Record):
    """The tree and the cycles under way."""

    tree: WorldTree = WorldTree()
    cycles: tuple[Cycle, ...] = ()
    ended: tuple[Cycle, ...] = ()
    """Cycles that are to be folded into the tree before the next ask."""


class WorldModel(Tactic[WorldOptions, WorldState]):
    """Each plan of the batch is one attempt of one cycle; a cycle that ended is folded into the tree before the next ask."""

    name = "world-model"
    Options = WorldOptions
    State = WorldState
    nothing_left = "no open decision, and no step left below any solution"

    def prepare(self, view: View) -> None:
        """Fold in what has ended; open decisions below solutions that have none, and where that leaves nothing, below a by-product."""
        tree = self._opened(view, self.state.tree)
        for cycle in self.state.ended:
            tree = self._folded(view, tree, cycle)
        tree = self._grown(view, self._current(view, tree))
        while not tree.frontier() and not self.state.cycles and (orphan := self._orphan(view, tree)):
            tree = self._grown(view, tree.edited(Adopt(solution=orphan, gain=view.ledger.speedups[orphan])))
        self.update(tree=tree, ended=())

    def ask(self, view: View) -> tuple[Ask, ...]:
        """One attempt for each cycle under way, then for the best decisions of the frontier."""
        tree = self.state.tree
        busy = {cycle.node for cycle in self.state.cycles}
        fresh = [Cycle(node=one.id) for one in tree.frontier() if one.id not in busy]
        asks = [self._attempt(view, tree, cycle) for cycle in (*self.state.cycles, *fresh)[: view.batch]]
        return tuple(ask for ask in asks if ask)

    def tell(self, view: View, fresh: Sequence[Told]) -> None:
        """Move each cycle on; those that ended are folded into the tree before the next ask."""
        tree, ended = self.state.tree, list(self.state.ended)
        cycles = {cycle.node: cycle for cycle in self.state.cycles}
        for told in fresh:
            if told.tag.isdigit() and tree.node(int(told.tag)):
                cycle = cycles.get(int(told.tag), Cycle(node=int(told.tag)))
                cycles[cycle.node] = self._moved(view, cycle, told)
        for cycle in list(cycles.values()):
            if cycle.spent or cycle.stale >= self.options.stagnation:
                ended.append(cycles.pop(cycle.node))
        self.update(cycles=tuple(cycles.values()), ended=tuple(ended))

    def _opened(self, view: View, tree: WorldTree) -> WorldTree:
        """Let the planner open the tree, where it has words for that and nothing is in it yet."""
        if tree.last != TOP or ROOT in view.ledger.closed:
            return tree
        return self._edited(tree, self._asked(view, EditWish(name=OPENING, parent=ROOT, focus=TOP, tree=tree)))

    def _asked(self, view: View, wish: EditWish) -> list[Edit]:
        """The planner's edits; none where it has no words for trees, or gave none that can be made."""
        found = (made(one, wish.ended) for one in view.answer(wish, TreeEdits).edits)
        return [edit for edit in found if not isinstance(edit, str)]

    def _edited(self, tree: WorldTree, edits: Sequence[Edit]) -> WorldTree:
        for edit in edits:
            if not tree.fault(edit):
                tree = tree.edited(edit)
        return tree

    def _grown(self, view: View, tree: WorldTree) -> WorldTree:
        """Open decisions below every solution that has none open, the fastest solutions first."""
        solved = sorted(
            (one for one in tree.nodes if one.solution in view.ledger.speedups),
            key=lambda one: (-view.ledger.speedups[one.solution], one.id),
        )
        for node in solved:
            if any(child.state == "open" for child in tree.children(node.id)) or node.solution in view.ledger.closed:
                continue
            # a planner that edits the tree has said there what it thinks of the steps
            offers: tuple[Offer, ...] = view.offers(node.solution, rated=not self._has_editor(view))
            tree = self._edited(tree, proposals(tree, node, offers, self.options.inserts))
        return tree

    def _current(self, view: View, tree: WorldTree) -> WorldTree:
        """Prune decisions that someone else, a refinement or another method of a portfolio, has tried since."""
        busy = {cycle.node for cycle in self.state.cycles}
        for one in tree.nodes:
            offers = view.archive.offers(tree.solution(one.parent)) if one.state == "open" and one.id not in busy else None
            if offers is not None and one.action and all(offer.action.id != one.action.id for offer in offers):
                tree = tree.edited(Prune(node=one.id))
        return tree

    def _orphan(self, view: View, tree: WorldTree) -> str:
        """The fastest fertile version that no decision stands for; empty where there is none."""
        taken = {one.solution for one in tree.nodes}
        return next((name for name in view.ledger.ranked() if name not in taken), "")

    def _attempt(self, view: View, tree: WorldTree, cycle: Cycle) -> Ask | None:
        """The decision itself first; then variants of its kind on the better of its parent and the cycle's best."""
        node = tree.node(cycle.node)
        if node is None or node.action is None:
            return None
        parent = tree.solution(node.parent)
        if not cycle.best and not cycle.stale:
            return Ask(parent=parent, action=node.action, tag=str(node.id))
        speedups = view.ledger.speedups
        base = cycle.best if cycle.best and speedups[cycle.best] >= speedups[parent] else parent
        return Ask(parent=base, kinds=(node.action.kind,), inspirations=(cycle.best,) * bool(cycle.best), tag=str(node.id))

    def _moved(self, view: View, cycle: Cycle, told: Told) -> Cycle:
        if not told.plan:
            return cycle.model_copy(update={"spent": True})
        speedups = view.ledger.speedups
        if told.verdict is not Verdict.PASS or (cycle.best and speedups[told.candidate] <= speedups[cycle.best]):
            second = self._second(view, cycle, told)
            return cycle.model_copy(update={"stale": cycle.stale + 1, "second": second})
        # a slower child is kept, but only beating the parent counts as progress
        stale = 0 if told.speedup > speedups[told.parent] else cycle.stale + 1
        second = cycle.best if cycle.best and self._differ(view, cycle.best, told.candidate) else cycle.second
        return cycle.model_copy(update={"best": told.candidate, "second": second, "stale": stale})

    def _second(self, view: View, cycle: Cycle, told: Told) -> str:
        if told.verdict is not Verdict.PASS or told.candidate == cycle.best or not self._differ(view, cycle.best, told.candidate):
            return cycle.second
        names = [name for name in (cycle.second, told.candidate) if name]
        return max(names, key=lambda name: (view.ledger.speedups[name], name))

    def _differ(self, view: View, one: str, other: str) -> bool:
        return view.archive.portrait(one).signature != view.archive.portrait(other).signature

    def _folded(self, view: View, tree: WorldTree, cycle: Cycle) -> WorldTree:
        """Conclude the node; split off a second solution; update beliefs; prune what no longer fits."""
        node = tree.node(cycle.node)
        if node is None or node.state != "open":
            return tree
        speedups = view.ledger.speedups
        parent = speedups.get(tree.solution(node.parent), 1.0)
        gain = speedups[cycle.best] / parent if cycle.best else node.gain
        taken = {one.solution for one in tree.nodes}
        # a solution that another node has already is no news: the decision led to a known kernel
        tree = tree.concluded(node.id, cycle.best if cycle.best not in taken else "", gain)
        edits = self._asked(view, self._wish(speedups, tree, cycle, node, parent))
        if edits:
            tree = self._edited(tree, edits)
            return self._edited(tree, overflow(tree, hopeless=False))
        by_rules: list[Edit] = [*self._splits(speedups, cycle, node, parent), *beliefs(tree, node, gain if cycle.best else 0.0)]
        tree = self._edited(tree, by_rules)
        return self._edited(tree, overflow(tree))

    def _wish(self, speedups: dict[str, float], tree: WorldTree, cycle: Cycle, node: Node, parent: float) -> EditWish:
        """Ask for edits below the node's solution; where it has none, below its parent's."""
        focus = node.id if tree.solution(node.id) else node.parent
        ended = Ended(
            node=node.id,
            expected=node.gain,
            measured=speedups[cycle.best] / parent if cycle.best else None,
            attempts=cycle.stale,
            second=cycle.second if focus == node.id else "",
            second_gain=speedups[cycle.second] / parent if cycle.second else 0.0,
        )
        return EditWish(name=f"edit {node.id}", parent=tree.solution(focus), focus=focus, tree=tree, ended=ended)

    def _has_editor(self, view: View) -> bool:
        known = view.archive.answer(EditWish(name=OPENING, parent=ROOT, focus=TOP, tree=WorldTree()))
        return isinstance(known, TreeEdits) and bool(known.by)

    def _splits(self, speedups: dict[str, float], cycle: Cycle, node: Node, parent: float) -> list[Split]:
        if not cycle.second or node.id == TOP or speedups[cycle.second] < speedups[cycle.best] * (1 - self.options.split_within):
            return []
        return [Split(node=node.id, solution=cycle.second, gain=speedups[cycle.second] / parent)]
