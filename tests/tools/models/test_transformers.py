"""Models of the library transformers, made of a configuration with random weights: what of them can be replaced."""

from __future__ import annotations

import pytest
import torch

from tools.models.capture import capture
from tools.models.generic import as_given
from tools.models.loading import Workload
from tools.models.problem_text import ProblemText


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


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["Mixtral", "Olmoe", "Qwen3Moe"])
def test_a_sparse_block_in_eager_mode_is_one_problem(name: str) -> None:
    """The library's own loop over the experts that were hit is written as it is, for any number of tokens."""
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2}
    config = getattr(transformers, f"{name}Config")(**sizes, num_experts_per_tok=2, vocab_size=64, head_dim=8, moe_intermediate_size=48)
    setattr(config, "num_local_experts" if name == "Mixtral" else "num_experts", 4)
    config._experts_implementation = "eager"
    torch.manual_seed(0)
    model = getattr(transformers, f"{name}Model")(config).eval()
    block = next(part for part in model.modules() if type(part).__name__ == f"{name}SparseMoeBlock")
    given = torch.randn(1, 12, 32)
    with torch.no_grad():
        text = ProblemText(block, (given,), {}, name)
        assert text.picks_rows
        assert as_given(text, block, [given], block(given))
        other = torch.randn(1, 7, 32)
        assert as_given(text, block, [other], block(other))
