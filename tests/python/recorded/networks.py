"""Architectures of torchvision, timm and transformers, small and with random weights: a step of training."""

from __future__ import annotations

from typing import Any

import torch

from . import program
from .loops import data, gradients


def step(where: str, model: torch.nn.Module, x: torch.Tensor) -> Any:
    model.train().to(where)
    y = model(x.to(where))
    while not isinstance(y, torch.Tensor):
        y = next(iter(y.values())) if isinstance(y, dict) else y[0]
    loss = y.float().square().mean()
    loss.backward()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001)
    optimizer.step()
    return [y, loss.item(), gradients(model), list(model.buffers())]


def _text(name: str) -> torch.nn.Module:
    import transformers

    config = transformers.AutoConfig.for_model(name, **TINY)
    return transformers.AutoModel.from_config(config, attn_implementation="sdpa" if name in ATTENTION else None)


TINY = dict(
    vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_position_embeddings=64, num_key_value_heads=2, head_dim=8,
    d_model=32, num_layers=2, num_heads=4, d_kv=8, d_ff=48, n_embd=32, n_layer=2, n_head=4, n_positions=64, encoder_layers=2, decoder_layers=2,
    encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    decoder_start_token_id=1, use_cache=False, num_local_experts=4, num_experts_per_tok=2, state_size=8,
)  # fmt: skip
ATTENTION = ("bert", "gpt2", "llama", "bart")


def _add_text(name: str) -> None:
    def run(where: str) -> Any:
        model = _text(name)
        ids = torch.randint(3, 99, (2, 16), generator=torch.Generator().manual_seed(0))
        if name not in ("t5", "bart"):
            return step(where, model, ids)
        return step(where, _WithDecoder(model), ids)

    program(run, name=name, rtol=1e-4, atol=2e-5)


class _WithDecoder(torch.nn.Module):
    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model = model

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.model(ids, decoder_input_ids=ids)[0]


for one in ("bert", "gpt2", "llama", "t5", "bart", "mamba"):
    _add_text(one)


def _add_images(name: str, library: str, size: int, **options: Any) -> None:
    def run(where: str) -> Any:
        if library == "timm":
            import timm

            model = timm.create_model(name, num_classes=4, **options)
        else:
            import torchvision

            model = torchvision.models.get_model(name, weights=None, num_classes=4, **options)
        return step(where, model, data(2, 3, size, size))

    program(run, name=name, rtol=1e-3, atol=1e-4)


_add_images("resnet18", "torchvision", 64)
_add_images("mobilenet_v3_small", "torchvision", 64)
_add_images("vit_tiny_patch16_224", "timm", 32, img_size=32, patch_size=8, depth=2, drop_path_rate=0.1)
_add_images("convnext_atto", "timm", 32, depths=(1, 1, 1, 1), dims=(8, 16, 16, 16))
_add_images("resmlp_12_224", "timm", 32, img_size=32)
