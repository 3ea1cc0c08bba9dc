"""Real models, small and with random weights, in inference: as good as eager, and nothing but library ops as externs."""

import pytest
import timm
import torch
import transformers as tf
from compare import assert_as_good_as_eager, double_copy, to_double

import cxxinductor

LIBRARY_OPS = ("mm", "addmm", "bmm", "baddbmm", "convolution", "scaled_dot_product")


def ids(device, batch=2, length=17, vocabulary=99):
    return torch.randint(0, vocabulary, (batch, length), device=device)


def distilgpt2(device):
    config = tf.GPT2Config(n_layer=2, n_embd=48, n_head=4, vocab_size=99, n_positions=64)
    return tf.GPT2LMHeadModel(config), {"input_ids": ids(device), "use_cache": False}


def bert(device):
    config = tf.BertConfig(num_hidden_layers=2, hidden_size=48, num_attention_heads=4, intermediate_size=96, vocab_size=99)
    return tf.BertForMaskedLM(config), {"input_ids": ids(device)}


def bart(device):
    config = tf.BartConfig(
        encoder_layers=2, decoder_layers=2, d_model=48, encoder_attention_heads=4, decoder_attention_heads=4,
        encoder_ffn_dim=96, decoder_ffn_dim=96, vocab_size=99, max_position_embeddings=64,
    )
    return tf.BartForConditionalGeneration(config), {"input_ids": ids(device), "decoder_input_ids": ids(device), "use_cache": False}


def t5(device):
    config = tf.T5Config(num_layers=2, d_model=48, num_heads=4, d_kv=12, d_ff=96, vocab_size=99)
    return tf.T5ForConditionalGeneration(config), {"input_ids": ids(device), "decoder_input_ids": ids(device), "use_cache": False}


def vit(device):
    model = timm.create_model("vit_tiny_patch16_224", depth=2, embed_dim=48, num_heads=4, img_size=32, patch_size=8, num_classes=10)
    return model, {"x": torch.randn(2, 3, 32, 32, device=device)}


def resnet50(device):
    return timm.create_model("resnet50", layers=(2, 1, 1, 2), num_classes=10), {"x": torch.randn(2, 3, 64, 64, device=device)}


def convnext(device):
    model = timm.create_model("convnext_tiny", depths=(1, 1, 2, 1), dims=(16, 32, 48, 64), num_classes=10)
    return model, {"x": torch.randn(2, 3, 64, 64, device=device)}


MODELS = [distilgpt2, bert, bart, t5, vit, resnet50, convnext]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["f32", "bf16"])
@pytest.mark.parametrize("make", MODELS, ids=lambda make: make.__name__)
def test_inference(make, dtype, device):
    model, inputs = make(device)
    model = model.to(device).eval().requires_grad_(False)
    reference = double_copy(model)(**to_double(inputs))
    model = model.to(dtype)
    inputs = {k: v.to(dtype) if isinstance(v, torch.Tensor) and v.is_floating_point() else v for k, v in inputs.items()}
    if dtype != torch.float32:
        reference = double_copy(model)(**to_double(inputs))
    eager = model(**inputs)
    with cxxinductor.reports.collect() as graphs:
        compiled = torch.compile(model, backend="cxxinductor")(**inputs)
    assert_as_good_as_eager(first(compiled), first(eager), first(reference))
    assert graphs and cxxinductor.counters()["aten_fallback"] == cxxinductor.counters()["eager_fallback"] == 0
    for graph in graphs:
        strange = [op for op in graph.details["externs"] if not any(known in op for known in LIBRARY_OPS)]
        assert not strange, f"externs beside library ops: {sorted(set(strange))}"


def first(output):
    return output if isinstance(output, torch.Tensor) else output[0]
