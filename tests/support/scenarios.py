"""Scenarios of whole runs: a scripted model that plays every role from what the prompts show it."""

from __future__ import annotations

import json

from tests.support.scripted_server import Rule


def first_option(kind: str = r"\w+", uses: int = 0) -> list[Rule]:
    """A planner that takes an option of a kind (any by default) that was not tried: the first of those with one parameter, with two, …"""
    rules = []
    for count in (1, 2, 3, 0):
        names = range(count)
        shown = ", ".join(rf'"(?P<name{i}>\w+)": "?(?P<value{i}>[\w.]+)"?' for i in names)
        again = ", ".join(rf'"(?P=name{i})": "?(?P=value{i})"?' for i in names)
        option = rf"^- kind=(?P<kind>{kind}) region=(?P<region>[\w+]+) parameters=\{{{shown}\}}"
        # what was tried is listed once more, further down
        untried = rf"(?=.*# Tried)(?!.*# Tried.*kind=(?P=kind) region=(?P=region) parameters=\{{{again}\}})"
        plan = {
            "kind": "${kind}",
            "region": "${region}",
            "parameters": [{"name": f"${{name{i}}}", "value": f"${{value{i}}}"} for i in names],
            "rationale": "It is the first option.",
            "predicted_gain": None,
            "strategies": [],
        }
        rules.append(Rule(role="planner", match=option + untried, answer=json.dumps({"plans": [plan]}), uses=uses))
    return [*rules, Rule(role="planner", answer='{"plans": []}')]


def honest_profiler() -> Rule:
    """A profiler that cites the time it was given."""
    said = {"bottleneck": "dram-bandwidth", "evidence": "time_us is ${time}.", "figures": [{"name": "time_us", "value": 0}]}
    answer = json.dumps(said).replace('"value": 0', '"value": ${time}')
    return Rule(role="profiler", match=r"- time_us = (?P<time>[\d.]+)", answer=answer)


def mild_reviewer() -> Rule:
    """A reviewer without concerns."""
    return Rule(role="reviewer", answer='{"concerns": [], "lesson": "The scripted reviewer learnt something."}')


def coder(source: str, role: str = "coder", uses: int = 0) -> Rule:
    """A coder, or a repairer, that writes one file whatever it is asked."""
    return Rule(role=role, answer=f"Here it is.\n```python\n{source}```\n".replace("$", "$$"), uses=uses)


def whole_team() -> list[Rule]:
    """Rules for a run in which the built-in coder does the writing."""
    return [*first_option(), honest_profiler(), mild_reviewer()]
