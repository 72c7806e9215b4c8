"""References that send rows to experts, as users and libraries write them; each is a class-form problem at small sizes."""

from __future__ import annotations

EXPERT = """
class Expert(nn.Module):
    def __init__(self, hidden, inner):
        super().__init__()
        self.gate = nn.Linear(hidden, inner, bias=False)
        self.up = nn.Linear(hidden, inner, bias=False)
        self.down = nn.Linear(inner, hidden, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))
"""
ROUTED = """
class Model(nn.Module):
    def __init__(self, hidden, inner, experts, chosen):
        super().__init__()
        self.router = nn.Linear(hidden, experts, bias=False)
        self.experts = nn.ModuleList(Expert(hidden, inner) for _ in range(experts))
        self.chosen = chosen

    def forward(self, x):
        weights, chosen = torch.topk(self.router(x).softmax(dim=-1), self.chosen, dim=-1)
"""


def sample(body: str, *, before: str = EXPERT + ROUTED, given: str = "torch.randn(TOKENS, HIDDEN)", more: str = "") -> str:
    """Write a problem whose forward goes on with `body`."""
    lines = "\n".join(f"        {line}" if line else "" for line in body.strip("\n").split("\n"))
    return f"""import torch
import torch.nn as nn
import torch.nn.functional as F

TOKENS = 11
HIDDEN = 20
INNER = 24
EXPERTS = 5
CHOSEN = 2
{before}{lines}


SMALL_SIZES = [{{"TOKENS": 5}}]


def get_inputs():
    return [{given}{more}]


def get_init_inputs():
    return [HIDDEN, INNER, EXPERTS, CHOSEN]
"""


PLAIN = sample("""
found = torch.zeros_like(x)
for index, expert in enumerate(self.experts):
    row, place = torch.where(chosen == index)
    if len(row):
        found.index_add_(0, row, expert(x[row]) * weights[row, place, None])
return found
""")
ONE_HOT = sample("""
found = torch.zeros((x.shape[0], x.shape[1]), dtype=x.dtype, device=x.device)
mask = F.one_hot(chosen, num_classes=len(self.experts)).permute(2, 1, 0)
for index in range(len(self.experts)):
    place, row = torch.where(mask[index])
    current = x[None, row].reshape(-1, x.shape[1])
    current = self.experts[index](current) * weights[row, place, None]
    found.index_add_(0, row, current.to(x.dtype))
return found
""")
HIT = sample("""
found = torch.zeros_like(x)
mask = F.one_hot(chosen, num_classes=len(self.experts)).permute(2, 1, 0)
for index in torch.greater(mask.sum(dim=(-1, -2)), 0).nonzero():
    place, row = torch.where(mask[index].squeeze(0))
    found.index_add_(0, row, self.experts[index](x[row]) * weights[row, place, None])
return found
""")
COUNTED = sample("""
found = torch.zeros_like(x)
counts = torch.bincount(chosen.flatten(), minlength=len(self.experts)).tolist()
for index, expert in enumerate(self.experts):
    if counts[index] == 0:
        continue
    row, place = torch.where(chosen == index)
    found[row] += expert(x[row]) * weights[row, place, None]
return found
""")
STACKED = sample(
    """
found = torch.zeros_like(x)
for index in range(self.gate_up.shape[0]):
    row, place = torch.where(chosen == index)
    gate, up = F.linear(x[row], self.gate_up[index]).chunk(2, dim=-1)
    found.index_add_(0, row, (F.silu(gate) * up) @ self.down[index] * weights[row, place, None])
return found
""",
    before="""
class Model(nn.Module):
    def __init__(self, hidden, inner, experts, chosen):
        super().__init__()
        self.router = nn.Linear(hidden, experts, bias=False)
        self.gate_up = nn.Parameter(torch.randn(experts, 2 * inner, hidden) * 0.2)
        self.down = nn.Parameter(torch.randn(experts, inner, hidden) * 0.2)
        self.chosen = chosen

    def forward(self, x):
        weights, chosen = torch.topk(self.router(x).softmax(dim=-1), self.chosen, dim=-1)
""",
)
SWITCH = sample(
    """
weights, chosen = self.router(x).softmax(dim=-1).max(dim=-1)
found = x.clone()
for index, (first, second) in enumerate(zip(self.first, self.second)):
    mask = chosen == index
    if mask.any():
        found[mask] = second(F.gelu(first(x[mask]))) * weights[mask].unsqueeze(-1)
return found
""",
    before="""
class Model(nn.Module):
    def __init__(self, hidden, inner, experts, chosen):
        super().__init__()
        self.router = nn.Linear(hidden, experts)
        self.first = nn.ModuleList(nn.Linear(hidden, inner) for _ in range(experts))
        self.second = nn.ModuleList(nn.Linear(inner, hidden) for _ in range(experts))

    def forward(self, x):
""",
)
SENT = sample(
    """
found = torch.zeros_like(x)
for index, expert in enumerate(self.experts):
    row, place = torch.where(chosen == index)
    found.index_add_(0, row, expert(x[row]))
return found
""",
    before=EXPERT + ROUTED.split("    def forward", maxsplit=1)[0] + "    def forward(self, x, chosen):\n",
    more=", torch.randint(0, 3, (TOKENS, CHOSEN)) * 2",
)
"""Whose experts' numbers are an argument: experts 1 and 3 get no row."""
TO_ONE = SENT.replace("torch.randint(0, 3, (TOKENS, CHOSEN)) * 2", "torch.full((TOKENS, CHOSEN), 3)")
"""All of whose rows go to one expert, twice."""
NOWHERE = SENT.replace("torch.randint(0, 3, (TOKENS, CHOSEN)) * 2", "torch.randint(-1, 7, (TOKENS, CHOSEN))")
"""Some of whose numbers are no expert's."""
ONE_EACH = PLAIN.replace("CHOSEN = 2", "CHOSEN = 1")
HALVES = PLAIN.replace("bias=False", "bias=False, dtype=torch.bfloat16").replace(
    "(TOKENS, HIDDEN)", "(TOKENS, HIDDEN, dtype=torch.bfloat16)"
)
BIASED = STACKED.replace("self.gate_up[index])", "self.gate_up[index], self.bias[index])").replace(
    "        self.chosen = chosen", "        self.bias = nn.Parameter(torch.randn(experts, 2 * inner))\n        self.chosen = chosen"
)
ROUTES = {"to_one": TO_ONE, "nowhere": NOWHERE, "one_each": ONE_EACH, "halves": HALVES, "biased": BIASED}
"""By what is special about them."""
ASKS = ("len(row) != 0", "row.shape[0] > 0", "0 < row.numel()", "x[row].size(0) >= 1", "row.shape[0]", "(chosen == index).any()")
"""Ways to ask whether there are any rows."""
VIEWED = PLAIN.replace("expert(x[row])", "expert(x[row].view(row.shape[0], -1))")
"""Whose steps read how many rows there are, as a size."""
FORMS = {
    "plain": PLAIN,
    "viewed": VIEWED,
    "one_hot": ONE_HOT,
    "hit": HIT,
    "counted": COUNTED,
    "stacked": STACKED,
    "switch": SWITCH,
    "sent": SENT,
}
"""By name."""
REFUSED = {
    "mixes rows": PLAIN.replace("expert(x[row])", "(expert(x[row]) - expert(x[row]).mean(dim=0))"),
    "orders rows": PLAIN.replace("expert(x[row])", "expert(x[row]).cumsum(dim=0)"),
    "takes some rows": PLAIN.replace("row, expert(x[row]) * weights[row, place, None]", "row[:1], expert(x[row[:1]])"),
    "another expert": PLAIN.replace("expert(x[row])", "(expert(x[row]) if index else x[row])"),
    "other condition": PLAIN.replace("chosen == index", "chosen > index"),
    "writes over": COUNTED.replace("found[row] += ", "found[row] = "),
    "asks of others": PLAIN.replace("if len(row)", "if (x > 0).any()"),
    **{f"asks {words}": PLAIN.replace("if len(row)", f"if {words}") for words in ("len(row) > 1", "len(row) < 100", "row.size(0) > 3")},
    "asks row.shape[0] != 1": PLAIN.replace("if len(row)", "if row.shape[0] != 1"),
    "asks counts[index] > 1": COUNTED.replace("counts[index] == 0", "counts[index] <= 1"),
    "makes as many": PLAIN.replace("expert(x[row])", "expert(x[row]) * torch.ones(row.shape[0], 1)"),
    "several at once": PLAIN.replace("chosen == index", "weights > 0.1 * index"),
}
"""By what an expert does that none may do."""
