"""How many drafted words of each row are accepted, and the distribution that the next one is drawn from.

Occurs in speculative decoding. Memory-bound: probabilities of both models at every drafted place.
"""

import torch

ROWS = 32
DRAFTED = 4
WORDS = 128256
SMALL_SIZES = [{"ROWS": 5, "DRAFTED": 3, "WORDS": 67}, {"ROWS": 4, "DRAFTED": 2, "WORDS": 64}]


def speculative_acceptance(target, draft, words, uniform):
    ours = target[:, :-1].gather(2, words[..., None]).squeeze(2)
    theirs = draft.gather(2, words[..., None]).squeeze(2)
    accepted = (uniform * theirs <= ours).long().cumprod(dim=1).sum(dim=1)
    padded = torch.cat((draft, torch.zeros_like(draft[:, :1])), dim=1)
    place = accepted[:, None, None].expand(-1, 1, target.shape[2])
    rest = (target.gather(1, place) - padded.gather(1, place)).squeeze(1).clamp(min=0.0)
    return accepted, rest / rest.sum(dim=-1, keepdim=True)


def example_inputs():
    return (
        torch.softmax(torch.randn(ROWS, DRAFTED + 1, WORDS), dim=-1),
        torch.softmax(torch.randn(ROWS, DRAFTED, WORDS), dim=-1),
        torch.randint(0, WORDS, (ROWS, DRAFTED)),
        torch.rand(ROWS, DRAFTED),
    )
