"""Writes a GPT-2 as an exported model whose key-value cache is in its buffers. Usage: export.py MODEL.pt2 [--device cuda] [--checkpoint distilgpt2]

forward(tokens: i64[1, length], positions: i64[length]) -> logits f32[1, vocabulary] of the last token. It writes keys and values at these
positions of the cache, in place, and attends to all positions up to them: one program reads a prompt and then a token at a time.
Without --checkpoint the weights are random.
"""

import argparse

import torch
import torch.nn.functional as F
from transformers import GPT2Config, GPT2LMHeadModel


class Decoder(torch.nn.Module):
    """The layers of transformers' GPT-2 around a cache of `length` positions."""

    def __init__(self, model: GPT2LMHeadModel, length: int):
        super().__init__()
        config = model.config
        self.model, self.heads = model, config.n_head
        shape = (1, config.n_head, length, config.n_embd // config.n_head)
        for i in range(config.n_layer):
            self.register_buffer(f"keys{i}", torch.zeros(shape, dtype=model.dtype, device=model.device))
            self.register_buffer(f"values{i}", torch.zeros(shape, dtype=model.dtype, device=model.device))

    def attend(self, attention, x, i, positions):
        query, key, value = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in attention.c_attn(x).chunk(3, -1))
        keys, values = getattr(self, f"keys{i}"), getattr(self, f"values{i}")
        keys.index_copy_(2, positions, key)
        values.index_copy_(2, positions, value)
        visible = torch.arange(keys.shape[2], device=x.device) <= positions[:, None]
        result = F.scaled_dot_product_attention(query, keys, values, visible)
        return attention.c_proj(result.transpose(1, 2).flatten(2))

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        body = self.model.transformer
        x = body.wte(tokens) + body.wpe(positions)
        for i, layer in enumerate(body.h):
            x = x + self.attend(layer.attn, layer.ln_1(x), i, positions)
            x = x + layer.mlp(layer.ln_2(x))
        return self.model.lm_head(body.ln_f(x[:, -1])).float()


def random_model(layers=2, width=64, heads=4, vocabulary=97, length=128) -> GPT2LMHeadModel:
    torch.manual_seed(0)
    config = GPT2Config(n_layer=layers, n_embd=width, n_head=heads, vocab_size=vocabulary, n_positions=length, initializer_range=0.3,
                        bos_token_id=0, eos_token_id=0)  # fmt: skip
    return GPT2LMHeadModel(config).eval()


def export(model: GPT2LMHeadModel) -> torch.export.ExportedProgram:
    cache = model.config.n_positions
    device, length = model.device, torch.export.Dim("length", min=1, max=cache)
    example = (torch.zeros(1, 8, dtype=torch.long, device=device), torch.arange(8, device=device))
    with torch.no_grad():
        return torch.export.export(Decoder(model, cache), example, dynamic_shapes=({1: length}, {0: length}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", help="the file to write")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--checkpoint", help="a GPT-2 of transformers', by name or folder; without: random weights, GPT-2's sizes but for those below")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--vocabulary", type=int, default=97)
    parser.add_argument("--length", type=int, default=128, help="positions in the cache")
    given = parser.parse_args()
    if given.checkpoint:
        model = GPT2LMHeadModel.from_pretrained(given.checkpoint).eval()
    else:
        model = random_model(given.layers, given.width, given.heads, given.vocabulary, given.length)
    torch.export.save(export(model.to(given.device, getattr(torch, given.dtype))), given.model)


if __name__ == "__main__":
    main()
