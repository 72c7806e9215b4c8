"""Medusa-like verification: of a tree's paths the one whose tokens the model agrees with longest, its tokens and last hidden state."""

import torch

BATCH = 32
NODES = 64
PATHS = 42
DEPTH = 5
HIDDEN = 4096
VOCABULARY = 32000
SMALL_SIZES = [
    {"BATCH": 2, "NODES": 7, "PATHS": 4, "DEPTH": 3, "HIDDEN": 9, "VOCABULARY": 11},
    {"BATCH": 3, "NODES": 8, "PATHS": 5, "DEPTH": 4, "HIDDEN": 16, "VOCABULARY": 16},
]


class Model(torch.nn.Module):
    def forward(self, logits, tree_tokens, paths, hidden):
        choice = logits.argmax(-1)
        B = logits.shape[0]
        flat = paths.clamp(min=0).flatten()
        on_path = tree_tokens[:, flat].view(B, *paths.shape)
        wanted = choice[:, flat].view(B, *paths.shape)
        agrees = (on_path[:, :, 1:] == wanted[:, :, :-1]) & (paths[:, 1:] >= 0)
        length = agrees.int().cumprod(dim=-1).sum(-1)
        accepted, which = length.max(dim=1)
        row = paths[which]
        last = row.gather(1, accepted.long().unsqueeze(1)).squeeze(1)
        state = hidden[torch.arange(B, device=hidden.device), last]
        tokens = tree_tokens.gather(1, row.clamp(min=0))
        step = torch.arange(paths.shape[1], device=paths.device)
        return torch.where(step <= accepted[:, None], tokens, -1), accepted, state


def get_inputs():
    return [
        torch.randn(BATCH, NODES, VOCABULARY, dtype=torch.bfloat16),
        torch.randint(0, VOCABULARY, (BATCH, NODES)),
        torch.randint(0, NODES, (PATHS, DEPTH)),
        torch.randn(BATCH, NODES, HIDDEN, dtype=torch.bfloat16),
    ]


def get_init_inputs():
    return []
