"""What unaligned rows cost cuBLAS: DistilGPT2's head, forward and backward, by the row stride of the logits. Usage: matmul_padding.py [--out DIR]

The figures behind csrc/passes/graph/pad_matmul.cpp and csrc/ir/matmul_rows.h.
"""

import torch
from timing import argument_parser, interleaved, parse_for_cuda, save

TOKENS, WIDTH, VOCABULARY = 8192, 768, 50257


def matrix(rows, columns, stride):
    return torch.randn(rows, stride, device="cuda", dtype=torch.bfloat16)[:, :columns]


def products(vocabulary, stride):
    logits, weight = matrix(TOKENS, vocabulary, stride), matrix(vocabulary, WIDTH, WIDTH)
    hidden, out = matrix(TOKENS, WIDTH, WIDTH), matrix(TOKENS, vocabulary, stride)
    return {
        "hidden @ weight.T": lambda: torch.mm(hidden, weight.t(), out=out),
        "logits @ weight": lambda: logits @ weight,
        "logits.T @ hidden": lambda: logits.t() @ hidden,
    }


def main():
    args = parse_for_cuda(argument_parser(__doc__))
    rows = []
    padded = (VOCABULARY + 7) // 8 * 8
    for vocabulary, stride in ((VOCABULARY, VOCABULARY), (VOCABULARY, padded), (padded, padded), (VOCABULARY + 1, VOCABULARY + 1), (VOCABULARY + 3, VOCABULARY + 3)):
        times = interleaved(products(vocabulary, stride), repeats=20, device_only=True)
        rows.append({"columns": vocabulary, "row_stride": stride, "milliseconds": times})
        print(f"{vocabulary} columns, row stride {stride}: " + ", ".join(f"{k} {t:.2f} ms" for k, t in times.items()), flush=True)
    save("matmul_padding", {"rows": rows}, args.out)


if __name__ == "__main__":
    main()
