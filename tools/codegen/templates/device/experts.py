"""What files with experts carry: the sorting of pairs by expert, and what is asked of their weights."""

from __future__ import annotations

SORT = "sort_by_expert_kernel"
CHECK = "check_weights"

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
    CHECK: '''
def check_weights(weights):
    """Make sure that kernels can read weights which they find by their addresses: whole rows, in wide loads."""
    for weight in weights:
        assert weight.is_contiguous(), "weights of experts are contiguous"
        assert weight.storage_offset() * weight.element_size() % 16 == 0, "weights of experts begin at multiples of 16 bytes"
''',
}
"""By name."""
