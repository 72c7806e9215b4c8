"""Actions for a coder that lists none: a language model can be asked for any kind on any function."""

from __future__ import annotations

from agents.planner.protocol import Briefing
from agents.records.tune import TRIALS
from agents.sources.cuda import cuda_kernels
from agents.sources.triton import kernel_names
from tools.cost.choice import CHOICE, MADE
from tools.records import ROOT, Action, ActionKind

LISTED_ONLY = frozenset({CHOICE, MADE, TRIALS})
"""Parameters of steps that a schedule is needed for: only a coder that has one lists them, and nobody else can take them."""


def invented_actions(briefing: Briefing) -> tuple[Action, ...]:
    """One action of each kind on each region of the parent, and one for each parameter set that recalled strategies advise."""
    made = [
        Action(kind=kind, region=region, parameters=parameters)
        for region in regions(briefing)
        for kind in ActionKind
        # a design is stated by whoever has one
        if kind is not ActionKind.REWRITE
        for parameters in (*(r.strategy.parameters for r in briefing.recalled if r.strategy.kind is kind and not r.warning), {})
        if not LISTED_ONLY & parameters.keys()
    ]
    return tuple({action.id: action for action in made}.values())


def regions(briefing: Briefing) -> tuple[str, ...]:
    """Names of the parent's kernels; for the reference, or a source without kernels, its entry."""
    source = "" if briefing.parent == ROOT else briefing.parent_source
    kernels = (*kernel_names(source), *cuda_kernels(source))
    return kernels or (briefing.problem.entry,)
