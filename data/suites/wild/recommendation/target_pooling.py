"""Sum of a user's history, weighed by a small network that compares each item with the one that is offered.

Occurs in deep interest networks. Memory-bound where the network's four inputs are written out: two of them are made of the others.
"""

import torch

USERS = 1024
LONGEST = 200
WIDTH = 64
HIDDEN = 80
SMALL_SIZES = [
    {"USERS": 3, "LONGEST": 7, "WIDTH": 19, "HIDDEN": 5},
    {"USERS": 4, "LONGEST": 16, "WIDTH": 16, "HIDDEN": 16},
]


def target_pooling(target, history, lengths, first, bias, second):
    offered = target[:, None].expand_as(history)
    compared = torch.cat((offered, history, offered - history, offered * history), dim=-1)
    score = (torch.relu(compared @ first + bias) @ second).squeeze(-1)
    inside = torch.arange(history.shape[1], device=score.device)[None] < lengths[:, None]
    weight = torch.softmax(score.float().masked_fill(~inside, -1e9), dim=-1)
    return (weight[..., None] * history.float()).sum(1).to(history.dtype)


def example_inputs():
    half = {"dtype": torch.bfloat16}
    lengths = torch.randint(1, LONGEST + 1, (USERS,))
    first, second = torch.randn(4 * WIDTH, HIDDEN, **half) / 16, torch.randn(HIDDEN, 1, **half) / 9
    return (
        torch.randn(USERS, WIDTH, **half),
        torch.randn(USERS, LONGEST, WIDTH, **half),
        lengths,
        first,
        torch.randn(HIDDEN, **half),
        second,
    )
