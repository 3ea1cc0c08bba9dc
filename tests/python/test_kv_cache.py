"""Decoders with a static cache: the tokens of eager, the cache written in place."""

import pytest
import torch
import torch.nn.functional as F
from compare import assert_as_good_as_eager

import cxxinductor
from cxxinductor import reports

VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH, TOKENS = 97, 32, 4, 2, 96, 64


class Layer(torch.nn.Module):
    def __init__(self, by_index):
        super().__init__()
        self.by_index = by_index
        self.norm, self.norm2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.qkv, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.up, self.down = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, cache, position):
        heads = lambda t: t.view(t.shape[0], t.shape[1], HEADS, -1).transpose(1, 2)  # noqa: E731
        q, k, v = (heads(t) for t in self.qkv(self.norm(x)).chunk(3, -1))
        keys, values = cache[0], cache[1]
        if self.by_index:
            keys.index_copy_(2, position, k)
            values.index_copy_(2, position, v)
        else:
            keys[:, :, position] = k
            values[:, :, position] = v
        visible = torch.arange(LENGTH, device=x.device)[None, :] <= position[:, None]
        scores = (q @ keys.transpose(-1, -2)) * q.shape[-1] ** -0.5
        weights = scores.masked_fill(~visible, float("-inf")).softmax(-1)
        x = x + self.out((weights @ values).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Decoder(torch.nn.Module):
    def __init__(self, by_index=True):
        super().__init__()
        self.tokens, self.places = torch.nn.Embedding(VOCABULARY, WIDTH), torch.nn.Embedding(LENGTH, WIDTH)
        self.layers = torch.nn.ModuleList(Layer(by_index) for _ in range(LAYERS))
        self.norm, self.head = torch.nn.LayerNorm(WIDTH), torch.nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens, cache, position):
        x = self.tokens(tokens) + self.places(position)
        for i, layer in enumerate(self.layers):
            x = layer(x, cache[i], position)
        return self.head(self.norm(x[:, -1:]))


def new_cache(device, batch=1):
    return torch.zeros(LAYERS, 2, batch, HEADS, LENGTH, WIDTH // HEADS, device=device)


@torch.no_grad()
def generate(step, prompt, cache):
    """Greedy tokens and the cache."""
    token, position, out = prompt, torch.arange(prompt.shape[1], device=prompt.device), []
    for _ in range(TOKENS):
        token = step(token, cache, position).argmax(-1)
        position = position[-1:] + 1
        out.append(token)
    return torch.cat(out, 1)


@pytest.mark.parametrize("by_index", [True, False], ids=["index_copy", "index_put"])
def test_generates_what_eager_generates(by_index, device):
    torch.manual_seed(3)
    model = Decoder(by_index).to(device).eval()
    prompt = torch.randint(0, VOCABULARY, (1, 7)).to(device)
    ours, theirs = new_cache(device), new_cache(device)
    address = ours.data_ptr()
    with reports.collect() as graphs:
        tokens = generate(torch.compile(model, backend="cxxinductor"), prompt, ours)
    expected = generate(model, prompt, theirs)
    assert expected.unique().numel() > 5
    assert torch.equal(tokens, expected)
    torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)
    assert ours.data_ptr() == address and cxxinductor.counters()["aten_fallback"] == 0
    assert not [c for g in graphs for c in g.details["externs"] if "index" in c or "copy" in c or "scatter" in c]


def test_a_step_writes_its_own_row_of_the_cache(device):
    model = Decoder().to(device).eval()
    cache = new_cache(device, batch=8)
    row = cache.numel() * 4 // LENGTH  # of all layers
    with reports.collect() as graphs, torch.no_grad():
        torch.compile(model, backend="cxxinductor")(torch.zeros(8, 1, dtype=torch.int64, device=device), cache, torch.tensor([5], device=device))
    (graph,) = graphs
    kernels = graph.details["kernels"]
    assert max(k["bytes_written"] for k in kernels) < cache.numel() * 4 // (2 * LAYERS)
    assert sum(k["launches"] * k["bytes_written"] for k in kernels) < 40 * row


def test_a_cache_that_is_sliced(device):
    """Positions as Python numbers: one graph for all of them."""

    def step(cache, x, position: int):
        cache[:, position : position + 1] = x
        return cache[:, : position + 1].sum(1)

    ours, theirs = torch.zeros(2, 32, 4, device=device), torch.zeros(2, 32, 4, device=device)
    compiled = torch.compile(step, backend="cxxinductor", dynamic=True)
    for position in range(2, 20):
        x = torch.randn(2, 1, 4, device=device)
        torch.testing.assert_close(compiled(ours, x, position), step(theirs, x, position))
    assert torch.equal(ours, theirs)
    assert cxxinductor.counters()["graphs"] <= 2


def test_transformers_static_cache(device):
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=LENGTH,
    )
    torch.manual_seed(4)
    model = transformers.LlamaForCausalLM(config).to(device).eval()
    prompt = torch.randint(0, VOCABULARY, (1, 7)).to(device)

    def run(compiled):
        cache = transformers.StaticCache(config=config, max_cache_len=LENGTH)
        step = torch.compile(model, backend="cxxinductor") if compiled else model

        def logits(token, cache, position):
            return step(input_ids=token, past_key_values=cache, cache_position=position, use_cache=True).logits[:, -1:]

        return generate(logits, prompt, cache)

    assert torch.equal(run(True), run(False))
    assert cxxinductor.counters()["aten_fallback"] == 0


@pytest.mark.parametrize("fusion", ["always", "never"])
def test_products_written_into_a_cache(fusion, device):
    """Projections whose results go straight to places of a cache, and products that read it back."""

    def step(x, wk, wq, cache, place):
        k = (x @ wk).view(256, 4, 64).transpose(0, 1)
        cache.index_copy_(1, place, k)
        cache[:, :64] *= 0.5
        return torch.bmm((x @ wq).view(256, 4, 64).transpose(0, 1), cache.transpose(1, 2)).relu()

    def run(f, dtype):
        torch.manual_seed(5)
        x, wk, wq = (torch.randn(256, 256).bfloat16().to(device, dtype) / 16 for _ in range(3))
        cache = torch.zeros(4, 512, 64, device=device, dtype=dtype)
        return f(x, wk, wq, cache, torch.randperm(512)[:256].to(device)), cache

    dtype = torch.bfloat16
    ours = run(torch.compile(step, backend="cxxinductor", options={"epilogue_fusion": fusion}), dtype)
    assert_as_good_as_eager(ours, run(step, dtype), run(step, torch.float64))
