"""Rows added where an index says, into zeros: eager's kernels, which sort the indices, beside a sum over all rows for each place.

Usage: row_sums.py [--out DIR]

Device time of one call. The sizes are those of relative position biases (Swin: 169 places, 2401 rows of 4 to 48 heads) and of gradients of
token type embeddings (BERT). The limit of csrc/frontend/row_sums.cpp, beyond which the call stays eager's, comes from them.
"""

import torch
from timing import argument_parser, interleaved, parse_for_cuda, save

CASES = [(169, 2401, heads) for heads in (4, 8, 16, 32, 48)] + [(2, 8192, 768), (2, 8192, 1024), (16, 8192, 96)]  # places, rows, columns


def put(zeros, index, rows):
    return zeros.index_put((index,), rows, accumulate=True)


def sum_all(zeros, index, rows):
    places = torch.arange(zeros.shape[0], device=zeros.device)
    return torch.where(index[None, :, None] == places[:, None, None], rows[None], 0).sum(1)


def main():
    args = parse_for_cuda(argument_parser(__doc__))
    rows = []
    for places, count, columns in CASES:
        torch._dynamo.reset()
        index = torch.randint(0, places, (count,), device="cuda")
        values = torch.randn(columns, count, device="cuda").t() if places == 169 else torch.randn(count, columns, device="cuda")
        zeros = torch.zeros(places, columns, device="cuda")
        compiled = torch.compile(sum_all, backend="cxxinductor", dynamic=False)
        torch.testing.assert_close(compiled(zeros, index, values), put(zeros, index, values), rtol=1e-4, atol=1e-3)
        times = interleaved({"eager": lambda: put(zeros, index, values), "sum over all rows": lambda: compiled(zeros, index, values)}, device_only=True)
        rows.append({"places": places, "rows": count, "columns": columns, "milliseconds": times})
        print(rows[-1], flush=True)
    save("row_sums", {"rows": rows}, args.out)


if __name__ == "__main__":
    main()
