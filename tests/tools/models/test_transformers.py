"""Models of the library transformers, made of a configuration with random weights: what of them can be replaced."""

from __future__ import annotations

import pytest
import torch

from tools.models.capture import capture
from tools.models.loading import Workload


@pytest.mark.thorough
def test_a_llama_of_a_configuration_is_captured_layer_by_layer() -> None:
    """Each kind of module is one problem with both shapes; the whole model gives a record and is left to its parts."""
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        hidden_size=32, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=64
    )
    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(config).eval()
    calls = [
        Workload(name, (), {"input_ids": torch.randint(64, shape), "use_cache": False}, 1.0)
        for name, shape in (("prefill", (1, 12)), ("batch", (3, 5)))
    ]
    groups = {group.title: group for group in capture(model, calls).groups}
    for title in ("LlamaDecoderLayer", "LlamaAttention", "LlamaMLP", "LlamaRMSNorm"):
        trace = groups[title].trace
        assert trace is not None, groups[title].reason
        assert [shape.name for shape in trace.shapes] == ["prefill", "batch"]
    assert groups["LlamaForCausalLM"].trace is None
