"""Scenarios of whole runs: a scripted model that plays every role from what the prompts show it."""

from __future__ import annotations

import json

from tests.support.scripted_rules import Rule


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


def block_plan(block: int | str, region: str = "exp", said: str = "try it") -> str:
    """A planner's answer for the small landscape of tests/support/loop.py."""
    fixed: dict[str, object] = {"kind": "tiling", "region": region, "rationale": said, "predicted_gain": None, "strategies": []}
    return json.dumps({"plans": [{**fixed, "parameters": [{"name": "BLOCK", "value": block}]}]})


def block_code(block: int | str, verdict: str = "PASS", before: str = "", after: str = "") -> str:
    """A coder's answer for the small landscape: the file says how it ends."""
    return f"{before}```python\n# block: {block}\n# verdict: {verdict}\nclass ModelNew:\n    pass\n```{after}"


def block_team(blocks: tuple[int, ...] = (64, 128), verdict: str = "PASS") -> list[Rule]:
    """A model that plays every role on the small landscape: it plans some blocks, writes each, and then has no more plans."""
    diagnosis = json.dumps({"bottleneck": "dram-bandwidth", "evidence": "It is.", "figures": []})
    return [
        *(Rule(role="planner", answer=block_plan(block), uses=1) for block in blocks),
        Rule(role="planner", answer=json.dumps({"plans": []})),
        Rule(role="repairer", match=r"# block: (?P<block>\d+)", answer=block_code("${block}")),
        Rule(role="coder", match=r'"BLOCK": (?P<block>\d+)', answer=block_code("${block}", verdict)),
        # asked again, in words that do not name the block
        Rule(role="coder", answer=block_code(blocks[0], verdict)),
        Rule(role="profiler", answer=diagnosis),
        Rule(role="reviewer", answer=json.dumps({"concerns": [], "lesson": "Blocks matter."})),
    ]
