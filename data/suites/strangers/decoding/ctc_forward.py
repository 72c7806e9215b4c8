"""Log likelihoods of label sequences under frame posteriors, by the forward recursion with blanks between the labels."""

import torch

FRAMES = 160
BATCH = 64
CLASSES = 512
LABELS = 30
SMALL_SIZES = [{"FRAMES": 7, "BATCH": 2, "CLASSES": 9, "LABELS": 3}, {"FRAMES": 10, "BATCH": 4, "CLASSES": 16, "LABELS": 4}]


class Model(torch.nn.Module):
    def forward(self, logits, labels):
        log_probs = torch.log_softmax(logits, dim=-1)
        frames, batch, _ = log_probs.shape
        length = 2 * labels.shape[1] + 1
        extended = torch.zeros(batch, length, dtype=torch.long, device=labels.device)
        extended[:, 1::2] = labels
        emit = log_probs.gather(2, extended.unsqueeze(0).expand(frames, batch, length))
        neg = -1e30
        skip = torch.zeros(batch, length, dtype=torch.bool, device=labels.device)
        skip[:, 2:] = (extended[:, 2:] != 0) & (extended[:, 2:] != extended[:, :-2])
        alpha = torch.full((batch, length), neg, device=logits.device)
        alpha[:, :2] = emit[0, :, :2]
        for t in range(1, frames):
            one = torch.nn.functional.pad(alpha[:, :-1], (1, 0), value=neg)
            two = torch.nn.functional.pad(alpha[:, :-2], (2, 0), value=neg)
            two = torch.where(skip, two, neg)
            alpha = torch.logsumexp(torch.stack([alpha, one, two]), dim=0) + emit[t]
        return torch.logaddexp(alpha[:, -1], alpha[:, -2])


def get_inputs():
    return [torch.randn(FRAMES, BATCH, CLASSES), torch.randint(1, CLASSES, (BATCH, LABELS))]


def get_init_inputs():
    return []
