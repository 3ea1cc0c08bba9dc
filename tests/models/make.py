"""Writes the graphs of small real models, as torch.compile hands them over on CUDA. Usage: make.py [FOLDER] [--only NAME]

The launch count in the first line of each file is the test's expectation; a fresh file keeps that of the old one.
"""

import argparse
import re
import sys
import tempfile
from pathlib import Path

import timm
import torch
import transformers as tf

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "python"))

import cxxinductor  # noqa: E402
import test_models  # noqa: E402


WIDTH, HEADS, VOCABULARY = 64, 4, 96  # heads of 16: what the fused attention kernels take


def gpt2(device):
    config = tf.GPT2Config(n_layer=2, n_embd=WIDTH, n_head=HEADS, vocab_size=VOCABULARY, n_positions=64)
    return tf.GPT2LMHeadModel(config), {"input_ids": test_models.ids(device, vocabulary=VOCABULARY), "use_cache": False}


def bert(device):
    config = tf.BertConfig(num_hidden_layers=2, hidden_size=WIDTH, num_attention_heads=HEADS, intermediate_size=96, vocab_size=VOCABULARY)
    return tf.BertForMaskedLM(config), {"input_ids": test_models.ids(device, vocabulary=VOCABULARY)}


def t5(device):
    config = tf.T5Config(num_layers=2, d_model=WIDTH, num_heads=HEADS, d_kv=16, d_ff=96, vocab_size=VOCABULARY)
    ids = test_models.ids(device, vocabulary=VOCABULARY)
    return tf.T5ForConditionalGeneration(config), {"input_ids": ids, "decoder_input_ids": ids.clone(), "use_cache": False}


def resnet(device):
    model = timm.models.resnet.ResNet(timm.models.resnet.Bottleneck, (1, 1, 1, 1), num_classes=10)
    return model, {"x": torch.randn(4, 3, 64, 64, device=device)}


MAKERS = {
    "gpt2": gpt2,
    "bert": bert,
    "t5": t5,
    "resnet": resnet,
    "convnext": test_models.convnext,
}


def graph_text(make, device):
    model, inputs = make(device)
    model = model.to(device, torch.bfloat16).eval().requires_grad_(False)
    inputs = {k: v.to(torch.bfloat16) if isinstance(v, torch.Tensor) and v.is_floating_point() else v for k, v in inputs.items()}
    with tempfile.TemporaryDirectory() as folder:
        cxxinductor.explain(model, options={"dump": "after:graph-passes", "dump_dir": folder}, **inputs)
        (found,) = Path(folder).glob("*/*-graph-passes.txt")
        return found.read_text()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=HERE)
    parser.add_argument("--only", default="", choices=["", *MAKERS])
    args = parser.parse_args()
    for name, make in MAKERS.items():
        if args.only not in ("", name):
            continue
        old = HERE / f"{name}.cxxi"
        head = old.read_text().split("\n", 1)[0] if old.exists() else "; launches: 0"
        text = re.sub(r"^graph @\w+", f"graph @{name}", graph_text(make, "cuda"), count=1, flags=re.M)
        (args.folder / f"{name}.cxxi").write_text(f"{head}\n{text}")


if __name__ == "__main__":
    main()
