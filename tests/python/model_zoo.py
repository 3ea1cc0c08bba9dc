"""Exports of torchvision's, timm's and transformers' models, and of the programs of exported_programs.py, against eager: what becomes of each.

``python tests/python/model_zoo.py [--static] [--dynamic] [--as-written] [--decomposed] [--aten] [--program] [name ...]`` prints a line per model, kind of
batch and kind of export: ok (with kernels), the reason why it runs through ATen, an error, or what is wrong. Weights are random; inputs are
small. Not part of the tests: minutes, or hours. --aten: ATen runs the calls, without kernels. --program: through examples/run_model, in a
process without Python.
"""

from __future__ import annotations

import argparse
import dataclasses
import logging
import os
import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any, Callable, Iterator

import exported_ops  # noqa: F401  (more programs)
import torch
from exported_programs import PROGRAMS, Program
from run_program import exported, run_program, same
from torch.export import Dim
from torch.utils._pytree import tree_flatten

Made = tuple[torch.nn.Module, tuple[Any, ...], Any]
TOLERANCE = 1e-3
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
TIMM = (
    "convmixer_768_32", "crossvit_tiny_240", "eca_nfnet_l0", "edgenext_xx_small", "efficientformer_l1", "ghostnet_050", "hrnet_w18_small", "levit_128s",
    "mixer_s32_224", "mobilevit_xxs", "nf_resnet26", "poolformer_s12", "rexnet_100", "twins_svt_small", "volo_d1_224", "xcit_nano_12_p16_224",
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


def text_model(name: str) -> Made:
    import transformers

    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(name, **{k: v for k, v in TINY.items() if k not in ("image_size", "patch_size")})
    model = Outputs(transformers.AutoModel.from_config(config), **({"decoder": True} if name in ("t5", "bart") else {}))
    x = torch.randint(3, 99, (2, 16))
    return model.eval(), (x,), ({0: Dim("batch", min=2, max=64), 1: Dim.AUTO},)


def vision_model(name: str) -> Made:
    import transformers

    torch.manual_seed(0)
    sizes = {"hidden_sizes": [16, 32], "depths": [1, 1]} if name == "convnextv2" else {}
    config = transformers.AutoConfig.for_model(name, **{k: v for k, v in TINY.items() if k != "num_labels"}, **sizes)
    return Outputs(transformers.AutoModel.from_config(config)).eval(), (torch.randn(2, 3, 32, 32),), ({0: Dim("batch", min=2, max=64)},)


def image_model(name: str, size: int) -> Made:
    import torchvision

    torch.manual_seed(0)
    options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    model = torchvision.models.get_model(name, weights=None, **({"weights_backbone": None} if name in SEGMENTATION else {}), **options)
    return model.eval(), (torch.randn(2, 3, size, size),), ({0: Dim("batch", min=2, max=64)},)


def backbone(name: str) -> Made:
    import torchvision

    torch.manual_seed(0)
    model = torchvision.models.get_model(name, weights=None, weights_backbone=None).backbone
    return model.eval(), (torch.randn(2, 3, 64, 64),), ({0: Dim("batch", min=2, max=64)},)


def as_program(make: Callable[[str], Made], *args: Any) -> Callable[[], Program]:
    def made() -> Program:
        module, inputs, shapes = make(*args)
        return Program(module, inputs, dynamic_shapes=shapes)

    return made


def models() -> Iterator[tuple[str, Callable[[], Program]]]:
    yield from PROGRAMS.items()
    for name, size in (CLASSIFICATION | SEGMENTATION).items():
        yield name, as_program(image_model, name, size)
    for name in BACKBONES:
        yield f"{name}.backbone", as_program(backbone, name)
    for name in TEXT:
        yield name, as_program(text_model, name)
    for name in VISION:
        yield name, as_program(vision_model, name)
    for name in TIMM:
        yield name, as_program(timm_model, name)


def run_in_program(program: Any, args: Any) -> tuple[list[Any], str]:
    with tempfile.TemporaryDirectory() as folder:
        files = [f"{folder}/{name}" for name in ("model.pt2", "inputs.pt", "outputs.pt")]
        torch.export.save(program, files[0])
        torch.save(list(args), files[1])
        done = subprocess.run([str(PROGRAM), *files], capture_output=True, text=True, timeout=1800)
        if done.returncode:
            raise RuntimeError(done.stderr.strip() or f"ended with {done.returncode}")
        return list(torch.load(files[2])), done.stderr.strip()


def timm_model(name: str) -> Made:
    import timm

    torch.manual_seed(0)
    model = timm.create_model(name, pretrained=False, num_classes=7).eval()
    _, height, width = model.default_cfg["input_size"]
    return model, (torch.randn(2, 3, height, width),), ({0: Dim("batch", min=2, max=64)},)


def in_program(given: Program, decomposed: bool) -> str:
    program = exported(given, decomposed)
    with torch.no_grad():
        expected = tree_flatten(program.module()(*given.args))[0]
        found, said = run_in_program(program, given.args)
    return f"WRONG: {error}" if (error := same(found, expected, TOLERANCE)) else said[:400] or "ok"


def in_process(given: Program, decomposed: bool, options: dict[str, Any]) -> str:
    outcome = run_program(given, decomposed=decomposed, options=options, tolerance=TOLERANCE)
    if outcome.error:
        return f"{'' if 'Error' in outcome.error or 'Unsupported' in outcome.error else 'WRONG: '}{outcome.error[:400]}"
    return f"through ATen: {outcome.fallback[:300]}" if outcome.fallback else f"ok, {outcome.kernels} kernels"


def line(make: Callable[[], Program], dynamic: bool, decomposed: bool, run: Callable[..., str]) -> str:
    try:
        given = make()
        given = given if dynamic else dataclasses.replace(given, dynamic_shapes=None, others=[])
        exported(given, decomposed)
    except Exception as error:
        return f"not exported: {type(error).__name__}: {str(error).strip().splitlines()[0][:150]}"
    try:
        return run(given, decomposed)
    except Exception as error:
        return f"FAILED: {str(error).strip()[:400]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("--static", "--dynamic", "--as-written", "--decomposed", "--aten", "--program"):
        parser.add_argument(option, action="store_true")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    logging.disable(logging.ERROR)
    warnings.simplefilter("ignore")
    options = {"tier": "aten"} if given.aten else {}
    run = in_program if given.program else lambda program, decomposed: in_process(program, decomposed, options)
    kinds = [False] * (given.static or not given.dynamic) + [True] * (given.dynamic or not given.static)
    forms = [False] * (given.as_written or not given.decomposed) + [True] * (given.decomposed or not given.as_written)
    for name, make in models():
        if given.names and name not in given.names:
            continue
        for dynamic in kinds:
            for decomposed in forms:
                start = time.monotonic()
                torch.manual_seed(0)
                text = line(make, dynamic, decomposed, run)
                kind = f"{'dynamic' if dynamic else 'static':8} {'decomposed' if decomposed else 'as written'}"
                print(f"{name:32} {kind} {time.monotonic() - start:6.1f} s  {text}", flush=True)


if __name__ == "__main__":
    main()
