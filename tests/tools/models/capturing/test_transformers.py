"""Models of the library transformers, made of a configuration with random weights: what of them can be replaced."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from tools.models.capturing.capture import capture
from tools.models.capturing.generic import as_given
from tools.models.capturing.problem_text import ProblemText
from tools.models.loading import Workload


def llama() -> Any:
    """Make a small one of two layers."""
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        hidden_size=32, intermediate_size=80, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=64
    )
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(config).eval()


@pytest.mark.thorough
def test_a_llama_of_a_configuration_is_captured_layer_by_layer() -> None:
    """Each kind of module is one problem with both shapes; the whole model gives a record and is left to its parts."""
    model = llama()
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
def test_a_llama_with_its_cache_is_captured_around_it() -> None:
    """Rotary embeddings of queries and keys are one problem, and so is a residual with the norm behind it; the cache stays the model's."""
    model = llama()
    with torch.no_grad():
        cache = model(torch.randint(64, (2, 12)), use_cache=True).past_key_values
    step = Workload("decode", (), {"input_ids": torch.randint(64, (2, 1)), "past_key_values": cache}, 1.0)
    sections = {group.title: group.trace for group in capture(model, [step]).groups if group.forward is not None}
    rotary, residual = sections["LlamaAttentionSection1"], sections["LlamaDecoderLayerSection1"]
    assert rotary is not None
    assert (len(rotary.inputs), len(rotary.outputs)) == (5, 3)
    assert residual is not None
    assert residual.parameters == {"post_attention_layernorm_weight": "post_attention_layernorm.weight"}


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


SIZES = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
TEXT = {**SIZES, "vocab_size": 100}
IDS = {"input_ids": (2, 24)}
PIXELS = {"pixel_values": (2, 3, 64, 64)}
MODELS: dict[str, tuple[dict[str, Any], dict[str, tuple[int, ...]]]] = {
    "GPT2": ({"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 100}, IDS),
    "Bert": (TEXT, IDS),
    "DebertaV2": ({**TEXT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 16}, IDS),
    "Gemma2": ({**TEXT, "num_key_value_heads": 2, "head_dim": 16}, IDS),
    "Mamba": ({"hidden_size": 32, "num_hidden_layers": 1, "state_size": 8, "vocab_size": 100}, IDS),
    "ViT": ({**SIZES, "image_size": 64, "patch_size": 16}, PIXELS),
    "ConvNext": ({"hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 1, 1], "image_size": 64}, PIXELS),
    "ResNet": ({"embedding_size": 16, "hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 1, 1], "layer_type": "basic"}, PIXELS),
    "Swin": ({"image_size": 64, "embed_dim": 32, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}, PIXELS),
    "Segformer": ({"hidden_sizes": [16, 24, 32, 48], "depths": [1, 1, 1, 1]}, PIXELS),
    "Wav2Vec2": (
        {**SIZES, "conv_dim": (16, 16), "conv_stride": (5, 2), "conv_kernel": (10, 3), "num_conv_pos_embedding_groups": 4},
        {"input_values": (2, 1600)},
    ),
}
"""By kind: configuration, and shapes of the inputs."""


@pytest.mark.thorough
@pytest.mark.parametrize("kind", MODELS)
def test_what_takes_a_models_time_is_a_problem_or_is_told_of(kind: str) -> None:
    """Layers or their parts are traced; a module of a tenth of the time that is not has a reason, or holds others."""
    transformers = pytest.importorskip("transformers")
    sizes, inputs = MODELS[kind]
    torch.manual_seed(0)
    model = getattr(transformers, f"{kind}Model")(getattr(transformers, f"{kind}Config")(**sizes)).eval()
    given = {name: torch.randint(100, shape) if name == "input_ids" else torch.randn(shape) for name, shape in inputs.items()}
    found = capture(model, [Workload("call", (), given, 1.0)])
    assert any(group.trace and group.share > 0.05 for group in found.groups)
    inner = {path for path, module in model.named_modules() if any(module.children())}
    assert [
        group.title for group in found.groups if group.share > 0.1 and not (group.trace or group.reason or set(group.paths) <= inner)
    ] == []
