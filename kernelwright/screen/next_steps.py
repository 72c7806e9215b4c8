"""Three commands that make sense after a run, which judge and search as it did."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from graphs.run.assembly import ESTIMATE_TARGET
from tools.records import Tier
from tools.tracing.finding import default_home

Facts = dict[str, Any]
Step = tuple[str, str]
"""What a command is for, and the command."""


def next_commands(facts: Facts) -> tuple[Step, ...]:
    """Three commands that make sense after such an end, each with what it is for."""
    home = _home_option(facts)
    trace = ("see what was tried", f"kernelwright trace {facts['run']}{home}")
    costs = ("see where the time went", f"kernelwright trace {facts['run']} --costs{home}")
    doctor = ("see what this machine can", "kernelwright doctor")
    if facts["kernel"] and facts["bundle"]:
        verify = ("check the evidence", f"kernelwright verify {shlex.quote(facts['bundle'])}")
        return (verify, trace, _with_kernel(facts) if facts["problem_file"] else costs)
    if facts["unconfirmed"]:
        again = ("judge it again", _command("evaluate", facts, shlex.quote(facts["unconfirmed"])))
        return (again if facts["problem_file"] else costs, trace, doctor)
    if not facts["judged"]:
        return (doctor, trace, costs)
    if not facts["problem_file"]:
        return (trace, costs, ("see all runs", f"kernelwright runs{home}"))
    return (trace, ("see what can be generated", _command("explain", facts)), _more(facts))


def _more(facts: Facts) -> Step:
    if not facts["evaluations"]:
        return ("have a model write it", _command("optimize", facts, "--model NAME --base-url URL"))
    return ("search for longer", _command("optimize", facts, f"--budget {max(32, 2 * facts['evaluations'])}"))


def _with_kernel(facts: Facts) -> Step:
    kernel = shlex.quote(facts["kernel"])
    if facts["tier"] == Tier.ESTIMATED:
        return ("time it, on a GPU", _command("evaluate", facts, kernel))
    return ("search on from it", _command("optimize", facts, f"--start {kernel}"))


def _command(name: str, facts: Facts, more: str = "") -> str:
    """Write a command on the run's file, with the options under which the run judged it."""
    options = [f"--entry {shlex.quote(facts['entry'])}"] if facts["entry"] else []
    policy = facts["policy"]
    if policy["name"] != "default":
        options.append(f"--policy {policy['name']}")
    if name != "explain":
        options += [f"--{key.replace('_', '-')} {policy[key]:g}" for key in ("tolerance", "row_tolerance") if policy[key]]
        options += ["--non-finite"] if policy["non_finite"] else []
    if name != "evaluate" and facts["tier"] in (None, Tier.ESTIMATED) and facts["target"] != ESTIMATE_TARGET:
        options.append(f"--target {facts['target']}")
    return " ".join(["kernelwright", name, shlex.quote(facts["problem_file"]), *([more] if more else []), *options])


def _home_option(facts: Facts) -> str:
    """The option that finds the run again, where it is not in the default home."""
    home = Path(facts["folder"]).parent.parent
    return "" if home == default_home() else f" --home {shlex.quote(str(home))}"
