"""One new token's attention over a cache in pages of sixteen tokens, which a table names for each sequence.

Occurs in vLLM, SGLang and TensorRT-LLM. Memory-bound by the pages that are read; gathering them first doubles the traffic.
"""

import torch

BATCH = 16
HEADS = 32
PAGES = 2048
PAGE = 16
PAGES_EACH = 128
HEAD_SIZE = 128
SMALL_SIZES = [
    {"BATCH": 2, "HEADS": 3, "PAGES": 7, "PAGE": 4, "PAGES_EACH": 3, "HEAD_SIZE": 24},
    {"BATCH": 1, "HEADS": 2, "PAGES": 8, "PAGE": 16, "PAGES_EACH": 4, "HEAD_SIZE": 32},
]


def paged_decode(query, key_pages, value_pages, table, lengths):
    key = key_pages[table].flatten(1, 2)
    value = value_pages[table].flatten(1, 2)
    scores = torch.einsum("bhd,blhd->bhl", query, key).float() * query.shape[-1] ** -0.5
    outside = torch.arange(key.shape[1], device=key.device) >= lengths[:, None]
    weights = torch.softmax(scores.masked_fill(outside[:, None], float("-inf")), dim=-1)
    return torch.einsum("bhl,blhd->bhd", weights.to(value.dtype), value)


def example_inputs():
    pages = (PAGES, PAGE, HEADS, HEAD_SIZE)
    return (
        torch.randn(BATCH, HEADS, HEAD_SIZE, dtype=torch.float16),
        torch.randn(pages, dtype=torch.float16),
        torch.randn(pages, dtype=torch.float16),
        torch.randint(0, PAGES, (BATCH, PAGES_EACH)),
        torch.randint(1, PAGES_EACH * PAGE + 1, (BATCH,)),
    )
