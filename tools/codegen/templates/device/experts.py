"""What files with experts carry: the sorting of pairs by expert, and the table of their weights' addresses."""

from __future__ import annotations

SORT = "sort_by_expert_kernel"
ADDRESSES = "addresses"

EXPERTS: dict[str, str] = {
    SORT: '''
@triton.jit
def sort_by_expert_kernel(chosen_ptr, order_ptr, begins_ptr, n_pairs, FIRST: tl.constexpr, EXPERTS: tl.constexpr, BLOCK: tl.constexpr):
    """Pairs of a row and a place in the order of their experts, stable, and where each expert's begin: one expert a program."""
    expert = tl.program_id(0)
    smaller = tl.zeros([BLOCK], tl.int32)
    for start in range(0, n_pairs, BLOCK):
        pair = start + tl.arange(0, BLOCK)
        own = tl.load(chosen_ptr + pair, mask=pair < n_pairs, other=FIRST - 1) - FIRST
        smaller += ((own >= 0) & (own < expert)).to(tl.int32)
    place = tl.sum(smaller, axis=0)
    tl.store(begins_ptr + expert, place)
    for start in range(0, n_pairs, BLOCK):
        pair = start + tl.arange(0, BLOCK)
        own = tl.load(chosen_ptr + pair, mask=pair < n_pairs, other=FIRST - 1) - FIRST
        mine = own == expert
        count = mine.to(tl.int32)
        tl.store(order_ptr + place + tl.cumsum(count, 0) - 1, pair, mask=mine)
        place += tl.sum(count, axis=0)
    tl.store(begins_ptr + EXPERTS, place, mask=expert == EXPERTS - 1)
''',
    ADDRESSES: '''
def addresses(weights, experts: int) -> list[torch.Tensor]:
    """Make a table of the addresses of weights, one row for `experts` of them, followed by the weights themselves, which it holds."""
    held = [weight.contiguous() for weight in weights]
    # wide loads need addresses that are multiples of 16 bytes
    held = [weight if weight.data_ptr() % 16 == 0 else weight.clone() for weight in held]
    table = torch.tensor([weight.data_ptr() for weight in held], dtype=torch.int64, device=held[0].device)
    return [table.view(-1, experts), *held]
''',
}
"""By name."""
