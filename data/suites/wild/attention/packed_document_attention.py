"""Causal attention over a packed row of documents, none of which sees another.

Occurs in training on packed sequences. Compute-bound; tiles between documents need not be computed.
"""

import torch
import torch.nn.functional as F

HEADS = 16
TOKENS = 4096
HEAD_SIZE = 128
SMALL_SIZES = [{"HEADS": 3, "TOKENS": 37, "HEAD_SIZE": 24}, {"HEADS": 1, "TOKENS": 64, "HEAD_SIZE": 32}]


def packed_document_attention(query, key, value, documents):
    same = documents[:, None] == documents[None, :]
    seen = same.tril()
    return F.scaled_dot_product_attention(query[None], key[None], value[None], attn_mask=seen)[0]


def example_inputs():
    shape = (HEADS, TOKENS, HEAD_SIZE)
    documents = torch.randint(0, 8, (TOKENS,)).sort().values
    return *(torch.randn(shape, dtype=torch.bfloat16) for _ in range(3)), documents
