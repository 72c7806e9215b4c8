"""Runs whose model has several calls in flight at once, to be killed meanwhile."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.evaluator.killing import Kind
from benchmarks.evaluator.run_kills_child import LANDSCAPE
from tests.support.scenarios import block_code, block_plan, honest_profiler, mild_reviewer
from tests.support.scripted_rules import Rule, Scenario

ANSWER_S = 0.7
"""What an answer takes."""
ROUNDS = ((64, 32, 16, 128), (256, 512, 64, 32))
"""Blocks of the small landscape that are planned at once; 32 and 16 are wrong at first, and one of them can be mended."""
ACTION = r"kind=(?P<kind>\w+) region=(?P<region>[\w+]+) parameters=\{(?P<parameters>[^}]*)\}"
KERNEL = '''import torch
import triton
import triton.language as tl


@triton.jit
def mean_kernel(x_ptr, out_ptr, steps, features, BLOCK_N: tl.constexpr):
    """out[b, n] = mean of x[b, :, n], for ${kind} of ${region} with ${parameters}."""
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = cols < features
    total = tl.zeros((BLOCK_N,), tl.float32)
    start = tl.program_id(1).to(tl.int64) * steps * features
    for step in range(steps):
        total += tl.load(x_ptr + start + step * features + cols, mask=mask, other=0.0)
    tl.store(out_ptr + tl.program_id(1) * features + cols, total / steps, mask=mask)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        batch, steps, features = x.shape
        out = torch.empty((batch, features), dtype=x.dtype, device=x.device)
        mean_kernel[(triton.cdiv(features, 128), batch)](x, out, steps, features, BLOCK_N=128)
        return out
'''


def landscape(evaluations: int, calls: int) -> Kind:
    """Runs of the small landscape in which a model has every role."""
    planned = [[json.loads(block_plan(block))["plans"][0] for block in (*blocks, *blocks)[:calls]] for blocks in ROUNDS]
    rules = [
        *(Rule(role="planner", answer=json.dumps({"plans": plans}), uses=1) for plans in planned),
        Rule(role="planner", answer=json.dumps({"plans": []})),
        Rule(role="repairer", match=r"# block: 32", answer=block_code(32)),
        Rule(role="repairer", answer="I do not know how to mend it."),
        Rule(role="coder", match=r'"BLOCK": (?P<block>16|32)\b', answer=block_code("${block}", "WRONG")),
        Rule(role="coder", match=r'"BLOCK": (?P<block>\d+)', answer=block_code("${block}")),
    ]
    roles = ("planner=llm", "coder=llm", "profiler=llm", "reviewer=llm")
    return Kind(Path(LANDSCAPE), evaluations, _slow(rules), roles, batch=calls)


def row_mean(evaluations: int, calls: int) -> Kind:
    """Runs with the interpreter and memory, in which a model writes a right kernel for every action, each another text."""
    writing = Rule(role="coder", match=ACTION, answer=f"```python\n{KERNEL}```")
    roles = ("planner=builtin", "coder=llm", "profiler=llm", "reviewer=llm")
    return Kind(Path("data/operators/row_mean.py"), evaluations, _slow([writing]), roles, batch=calls)


KINDS = {LANDSCAPE: landscape, "row_mean": row_mean}


def _slow(rules: list[Rule]) -> Scenario:
    """A model that takes its time, and profiles and reviews whatever it is shown."""
    return Scenario(rules=[rule.model_copy(update={"delay_s": ANSWER_S}) for rule in (*rules, honest_profiler(), mild_reviewer())])
