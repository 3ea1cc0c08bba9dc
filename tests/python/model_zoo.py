"""Exports of torchvision's and transformers' models, not decomposed, through examples/run_model against eager. Not part of the tests.

``python tests/python/model_zoo.py [--static] [--dynamic] [--replay] [name ...]`` prints a line per model and kind of batch. Weights are random;
inputs are small. --replay: within this process, where ATen runs the calls that would be compiled: seconds, and no kernels.
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, Callable, Iterator

import torch
from torch.export import Dim
from torch.utils._pytree import tree_leaves

PROGRAM = Path(os.environ.get("CXXI_RUN_MODEL", Path(__file__).resolve().parents[2] / "build" / "release" / "examples" / "run_model"))

CLASSIFICATION = {
    "alexnet": 64, "convnext_tiny": 32, "densenet121": 32, "efficientnet_b0": 32, "efficientnet_v2_s": 32, "googlenet": 64,
    "inception_v3": 96, "maxvit_t": 224, "mnasnet0_5": 32, "mobilenet_v2": 32, "mobilenet_v3_small": 32, "regnet_x_400mf": 32,
    "regnet_y_400mf": 32, "resnet18": 32, "resnet50": 32, "resnext50_32x4d": 32, "shufflenet_v2_x0_5": 32, "squeezenet1_1": 64,
    "swin_t": 64, "swin_v2_t": 64, "vgg11_bn": 32, "vit_b_32": 224, "wide_resnet50_2": 32,
}  # fmt: skip
SEGMENTATION = {"fcn_resnet50": 48, "deeplabv3_mobilenet_v3_large": 48, "lraspp_mobilenet_v3_large": 48}
BACKBONES = ("fasterrcnn_resnet50_fpn", "retinanet_resnet50_fpn_v2", "ssdlite320_mobilenet_v3_large")

# What makes configurations small; each architecture takes what it knows.
TINY = dict(
    vocab_size=99, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, max_position_embeddings=64,
    num_key_value_heads=2, head_dim=8, d_model=32, num_layers=2, num_heads=4, d_kv=8, d_ff=48, n_embd=32, n_layer=2, n_head=4, n_positions=64,
    encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48,
    dim=32, hidden_dim=48, n_layers=2, n_heads=4, embedding_size=32, image_size=32, patch_size=8, ffn_dim=48, word_embed_proj_dim=32,
    pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, use_cache=False, state_size=8, num_experts=4,
    num_experts_per_tok=2, num_local_experts=4, moe_intermediate_size=16, attention_window=8, block_size=4, num_labels=3,
)  # fmt: skip
TEXT = (
    "bert", "roberta", "distilbert", "albert", "electra", "deberta-v2", "mpnet", "gpt2", "gpt_neo", "gpt_neox", "opt", "bloom", "llama", "mistral",
    "qwen2", "qwen3", "gemma", "gemma2", "phi", "falcon", "mamba", "t5", "bart", "mixtral",
)  # fmt: skip
VISION = ("vit", "deit", "beit", "convnextv2", "dinov2", "clip_vision_model", "siglip_vision_model")


class Outputs(torch.nn.Module):
    """A model of transformers with tensors as results."""

    def __init__(self, model: torch.nn.Module, **fixed: Any):
        super().__init__()
        self.model, self.fixed = model, fixed

    def forward(self, x: torch.Tensor) -> Any:
        given = {"decoder_input_ids": x} if self.fixed.get("decoder") else {}
        fixed = {key: value for key, value in self.fixed.items() if key != "decoder"}
        return self.model(x, **given, **fixed, return_dict=True)[0]


def text_model(name: str) -> tuple[torch.nn.Module, tuple[Any, ...], Any]:
    import transformers

    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(name, **{k: v for k, v in TINY.items() if k not in ("image_size", "patch_size")})
    model = Outputs(transformers.AutoModel.from_config(config), **({"decoder": True} if name in ("t5", "bart") else {}))
    x = torch.randint(3, 99, (2, 16))
    return model.eval(), (x,), ({0: Dim("batch", min=2, max=64), 1: Dim.AUTO},)


def vision_model(name: str) -> tuple[torch.nn.Module, tuple[Any, ...], Any]:
    import transformers

    torch.manual_seed(0)
    sizes = {"hidden_sizes": [16, 32], "depths": [1, 1]} if name == "convnextv2" else {}
    config = transformers.AutoConfig.for_model(name, **{k: v for k, v in TINY.items() if k != "num_labels"}, **sizes)
    return Outputs(transformers.AutoModel.from_config(config)).eval(), (torch.randn(2, 3, 32, 32),), ({0: Dim("batch", min=2, max=64)},)


def image_model(name: str, size: int) -> tuple[torch.nn.Module, tuple[Any, ...], Any]:
    import torchvision

    torch.manual_seed(0)
    options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    model = torchvision.models.get_model(name, weights=None, **({"weights_backbone": None} if name in SEGMENTATION else {}), **options)
    return model.eval(), (torch.randn(2, 3, size, size),), ({0: Dim("batch", min=2, max=64)},)


def backbone(name: str) -> tuple[torch.nn.Module, tuple[Any, ...], Any]:
    import torchvision

    torch.manual_seed(0)
    model = torchvision.models.get_model(name, weights=None, weights_backbone=None).backbone
    return model.eval(), (torch.randn(2, 3, 64, 64),), ({0: Dim("batch", min=2, max=64)},)


def models() -> Iterator[tuple[str, Callable[[], tuple[torch.nn.Module, tuple[Any, ...], Any]]]]:
    for name, size in (CLASSIFICATION | SEGMENTATION).items():
        yield name, lambda name=name, size=size: image_model(name, size)
    for name in BACKBONES:
        yield f"{name}.backbone", lambda name=name: backbone(name)
    for name in TEXT:
        yield name, lambda name=name: text_model(name)
    for name in VISION:
        yield name, lambda name=name: vision_model(name)


def run_program(program: Any, args: Any) -> tuple[list[Any], str]:
    with tempfile.TemporaryDirectory() as folder:
        files = [f"{folder}/{name}" for name in ("model.pt2", "inputs.pt", "outputs.pt")]
        torch.export.save(program, files[0])
        torch.save(list(args), files[1])
        done = subprocess.run([str(PROGRAM), *files], capture_output=True, text=True, timeout=1800)
        if done.returncode:
            raise RuntimeError(done.stderr.strip() or f"ended with {done.returncode}")
        return list(torch.load(files[2])), done.stderr.strip()


def replay(program: Any, args: Any) -> tuple[list[Any], str]:
    from cxxinductor import _C, fx_reader

    graph = fx_reader.read_graph(program.graph_module)
    replayed = _C.replayed(graph.builder)
    if replayed["guards"]:
        raise RuntimeError(f"guards {replayed['guards']}")
    options = _C.Options()
    options.set("tier", "aten")
    replayed["builder"].graph_text()
    compiled = _C.compile(replayed["builder"], options)
    tensors = {**dict(program.named_parameters()), **dict(program.named_buffers()), **program.constants}
    inputs, given = [], iter(args)
    for spec in program.graph_signature.input_specs:
        inputs.append(tensors[spec.target].detach().clone() if spec.target else next(given))
    kept = "; ".join(f"kept {op}: {reason.splitlines()[0]}" for op, reason in replayed["kept"].items())
    return compiled([*inputs, *graph.constants]), kept


def outcome(make: Callable[..., Any], dynamic: bool, run: Callable[..., Any]) -> str:
    try:
        with torch.no_grad():
            model, args, shapes = make()
            expected = [y for y in tree_leaves(model(*args)) if isinstance(y, torch.Tensor)]
            program = torch.export.export(model, args, dynamic_shapes=shapes if dynamic else None)
    except Exception as error:
        return f"not exported: {type(error).__name__}: {str(error).strip().splitlines()[0][:150]}"
    try:
        with torch.no_grad():
            found, said = run(program, args)
    except Exception as error:
        return f"FAILED: {str(error).strip()[:400]}"
    found = [y for y in tree_leaves(found) if isinstance(y, torch.Tensor)]
    if len(found) != len(expected):
        return f"WRONG: {len(found)} tensors, expected {len(expected)}"
    for i, (a, b) in enumerate(zip(found, expected)):
        if a.shape != b.shape or a.dtype != b.dtype or a.stride() != b.stride():
            return f"WRONG: output {i}: {a.dtype} {list(a.shape)} {a.stride()}, expected {b.dtype} {list(b.shape)} {b.stride()}"
        if not torch.allclose(a, b, rtol=1e-3, atol=1e-4 * max(1.0, b.abs().max().item() if b.numel() else 0.0), equal_nan=True):
            return f"WRONG: output {i}: {(a - b).abs().max().item()} apart"
    return said[:400] or "ok"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("--static", "--dynamic", "--replay"):
        parser.add_argument(option, action="store_true")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    kinds = [False] * (given.static or not given.dynamic) + [True] * (given.dynamic or not given.static)
    for name, make in models():
        for dynamic in kinds if not given.names or name in given.names else []:
            start = time.monotonic()
            text = outcome(make, dynamic, replay if given.replay else run_program)
            print(f"{name:32} {'dynamic' if dynamic else 'static':8} {time.monotonic() - start:6.1f} s  {text}", flush=True)


if __name__ == "__main__":
    main()
