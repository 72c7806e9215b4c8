"""What a run starts from: a problem that can be judged, and the kernel that a user brings or that a fork begins at.

That kernel is the first candidate, judged before anything is planned, and a parent where it passes.
"""

from __future__ import annotations

import ast
from pathlib import Path

from agents.coder.protocol import Draft
from agents.reviewer.lesson import ended, failure_detail
from graphs.run.context import Services
from graphs.run.fork import FORK, fork_of, fork_rationale
from graphs.run.settings import RunSettings
from graphs.search.protocol import Ask
from tools.errors import UnjudgeableError, UserError
from tools.evaluation.supervisor.interpretable import obstacle
from tools.guards import unguarded
from tools.hardware.devices import choose_devices
from tools.machine_code.compilers import missing_tools
from tools.problems.source import parse, read_source
from tools.records import ROOT, Action, ActionKind, Plan, Problem, Verdict, content_hash
from tools.references.reading import read_again

USER = "user"
"""Who planned and wrote the kernel that the run starts from."""
START = "start"
"""Tag of the ask for it; no search method sees it."""


def read_start(path: Path) -> str:
    """Read the user's kernel, without the guard that a delivered one has; UserError for what cannot be a candidate's source."""
    source = unguarded(read_source(path))
    tree = parse(source, str(path))
    if not any(isinstance(node, ast.ClassDef) and node.name == "ModelNew" for node in tree.body):
        raise UserError(
            f"{path} defines no class ModelNew.", "Give the kernel as `kernelwright evaluate` takes it: a class ModelNew(nn.Module)."
        )
    return source


def check_language(settings: RunSettings) -> None:
    """Refuse CUDA C++ where nobody could write it, or this machine could not judge it."""
    team = settings.team
    if team.frame.language == "triton":
        return
    if team.variant("coder") != "llm":
        raise UserError("CUDA C++ is written by a language model only.", "Name one with --model (and no other coder than llm).")
    if settings.evaluator != "local":
        return
    if not choose_devices(settings.devices):
        raise UserError(
            "CUDA C++ cannot be judged here: this machine has no NVIDIA GPU.",
            "Let workers judge it: --evaluator spool:DIR (docs/workers.md), or ray (docs/ray.md).",
        )
    if missing := missing_tools():
        raise UserError(f"CUDA C++ cannot be built here: this machine lacks {missing}.", "Install it, or leave --language out.")


def check_judgeable(settings: RunSettings, problem: Problem) -> None:
    """Refuse a problem none of whose candidates could be judged by this machine, before anything is made or paid for it."""
    if settings.evaluator != "local" or choose_devices(settings.devices):
        return
    reason, mend = obstacle(problem, read_again(problem).variants)
    if reason:
        raise UnjudgeableError(f"No candidate for {problem.name} could be judged without a GPU: {reason}.", mend)


def starting_ask(services: Services, round_: int) -> Ask | None:
    """What is asked for before a search method is: the user's kernel or a fork's, in the first round."""
    return Ask(parent=ROOT, tag=START) if round_ == 1 and (services.settings.start or fork_of(services.store)) else None


def starting_plan(services: Services) -> Plan:
    """The plan that the user's kernel, or a fork's, is the outcome of."""
    if fork := fork_of(services.store):
        action = Action(kind=ActionKind.ALGORITHM, region=services.problem.entry, parameters={FORK: fork.candidate})
        return Plan(parent=ROOT, action=action, rationale=fork_rationale(fork), planner=FORK)
    source, name = services.settings.start, services.settings.start_file
    action = Action(kind=ActionKind.ALGORITHM, region=services.problem.entry, parameters={START: content_hash(source)})
    return Plan(parent=ROOT, action=action, rationale=f"The kernel that the user brought ({name}).", planner=USER)


def starting_draft(services: Services) -> Draft:
    """The user's kernel, or a fork's, as it is."""
    if fork := fork_of(services.store):
        return fork.draft
    return Draft(source=services.settings.start, notes=(f"Brought by the user: {services.settings.start_file}.",))


def check_started(services: Services, plan: Plan, candidate: str) -> None:
    """Raise UserError where the kernel to start from did not pass and no repair of it did: what is asked for is not to be had."""
    evaluation = services.evaluation(candidate)
    if plan.planner not in (USER, FORK) or (evaluation is not None and evaluation.verdict is Verdict.PASS):
        return
    assert evaluation is not None
    detail = failure_detail(evaluation) or "; ".join(evaluation.notes[:2])
    repairs = services.candidate(candidate).repairs
    tried = f", and {repairs} repairs did not help" if repairs else ""
    fork = fork_of(services.store)
    name = fork.words if fork else services.settings.start_file
    other = "fork another candidate" if fork else "leave --start out"
    raise UserError(
        f"The kernel to start from, {name}, {ended(evaluation.verdict)}{f' ({detail})' if detail else ''}{tried}.",
        f"Mend it (`kernelwright evaluate PROBLEM KERNEL` shows all of the evidence), or {other}.",
    )
