"""Times one dumped kernel alone: ``python -m cxxinductor.time_kernel FOLDER KERNEL``.

FOLDER is what CXXINDUCTOR_DUMP=source wrote for a graph. The source beside the plan is compiled as it stands, so that a
change can be tried; it runs on fresh tensors and is compared with a copy that moves as many bytes.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import torch

from . import _C, config
from .errors import UserError

_DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f8e4m3fn": torch.float8_e4m3fn,
    "f8e5m2": torch.float8_e5m2,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "u8": torch.uint8,
    "u16": torch.uint16,
    "u32": torch.uint32,
    "u64": torch.uint64,
    "bool": torch.bool,
}
_INCLUDE = re.compile(r'^#include "(.+)"$', re.MULTILINE)
_CACHE_BYTES = 256 << 20  # written between two timed launches on a GPU, so that the kernel finds nothing in its L2 cache


@dataclass(frozen=True)
class Timing:
    """Median seconds of one launch, and of a copy that reads and writes as many bytes in all.

    Attributes:
        check: "" where no check was asked for; else what the comparison with the interpreter found or left out.
    """

    kernel: str
    device: str
    seconds: float
    copy_seconds: float
    bytes_read: int
    bytes_written: int
    check: str = ""

    def __str__(self) -> str:
        total = self.bytes_read + self.bytes_written
        checked = f"{self.check}\n" if self.check else ""
        return checked + (
            f"{self.kernel} on {self.device}: {self.seconds * 1e6:.2f} us, reads {self.bytes_read} and writes "
            f"{self.bytes_written} bytes: {total / self.seconds / 1e9:.2f} GB/s\n"
            f"a copy of as many bytes: {self.copy_seconds * 1e6:.2f} us, {total / self.copy_seconds / 1e9:.2f} GB/s "
            f"({100 * self.copy_seconds / self.seconds:.0f} % of the kernel's time)"
        )


def time_kernel(
    folder: str | Path, kernel: str, *, symbols: dict[str, int] | None = None, repeat: int = 100, check: bool = False
) -> Timing:
    """Times ``kernel`` of the dump in ``folder``.

    Args:
        symbols: values for sizes that are symbols; those left out are 1024, or the nearest value that their range allows.
        repeat: launches timed.
        check: compare one launch with the interpreter first.

    Raises:
        UserError: there is no such kernel, or a symbol is unknown.
        KernelMismatch: check found a wrong result.
    """
    plan, source = _read(Path(folder), kernel)
    values = _symbol_values(plan, symbols or {})
    arguments = _C.plan_arguments(plan, values)
    tensors = [_tensor(row) for row in arguments["tensors"]]
    options = config.resolve({"dump": ""})
    run = _C.load_plan(plan, source, options)
    checked = _checked(kernel, plan, source, [*tensors, *values.values()], options) if check else ""
    device = next((t.device for t in tensors if t.is_cuda), torch.device("cpu"))
    read, written = _bytes(arguments, tensors, bool(values))
    half = max(1, (read + written) // 2)
    start, target = (torch.zeros(half, dtype=torch.uint8, device=device) for _ in range(2))
    with torch.cuda.device(device) if device.type == "cuda" else contextlib.nullcontext():
        seconds = seconds_of(lambda: run([*tensors, *values.values()]), device.type == "cuda", repeat)
        copy_seconds = seconds_of(lambda: target.copy_(start), device.type == "cuda", repeat)
    return Timing(kernel, str(device), seconds, copy_seconds, read, written, checked)


def seconds_of(run: Callable[[], Any], on_gpu: bool, repeat: int) -> float:
    """Median seconds of one of ``repeat`` calls of ``run``, on a GPU with nothing in its caches."""
    return (_time_cuda if on_gpu else _time_cpu)(run, repeat)


def _checked(kernel: str, plan: str, source: str, inputs: list[Any], options: "_C.Options") -> str:
    options.set("check", "interp")
    run, before = _C.load_plan(plan, source, options), _C.counters()["checked_launches"]
    run(inputs)
    agreed = _C.counters()["checked_launches"] - before
    return "\n".join([*([f"check=interp: {kernel} agrees with the interpreter"] if agreed else []), *run.take_check_notes()])


def _read(folder: Path, kernel: str) -> tuple[str, str]:
    kernels = folder / "kernels"
    plan = kernels / f"{kernel}.plan"
    sources = [path for path in (kernels / f"{kernel}.cu", kernels / f"{kernel}.cpp") if path.exists()]
    if not plan.exists() or not sources:
        known = ", ".join(sorted(path.stem for path in kernels.glob("*.plan"))) or "none; dump=source writes them"
        raise UserError(f"no kernel {kernel!r} in {folder}; known: {known}")
    return plan.read_text(), _with_includes(sources[0].read_text(), kernels)


def _with_includes(text: str, folder: Path) -> str:
    """The text with the templates that it includes, as they lie in the dump, edits included."""
    return _INCLUDE.sub(lambda line: _with_includes((folder / line[1]).read_text(), folder), text)


def _symbol_values(plan: str, given: dict[str, int]) -> dict[str, int]:
    known = {name: (low, high) for name, low, high in _C.plan_symbols(plan)}
    if unknown := sorted(set(given) - set(known)):
        raise UserError(f"no symbol {', '.join(unknown)} in the kernel's plan; known: {', '.join(known) or 'none'}")
    return {name: given.get(name, max(low, min(high, 1024))) for name, (low, high) in known.items()}


def _tensor(row: dict[str, Any]) -> torch.Tensor:
    """Numbers like those of a model for floats; zeros, which every index may be, for integers."""
    dtype, sizes, strides = _DTYPES[row["dtype"]], row["sizes"], row["strides"]
    span = 0 if 0 in sizes else 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides))
    if dtype.is_floating_point:
        generator = torch.Generator(row["device"]).manual_seed(0)
        memory = torch.randn(span, generator=generator, device=row["device"]).to(dtype)
    else:
        memory = torch.zeros(span, dtype=torch.uint8, device=row["device"]).to(dtype)
    return memory.as_strided(sizes, strides)


def _bytes(arguments: dict[str, Any], tensors: list[torch.Tensor], symbolic: bool) -> tuple[int, int]:
    if not symbolic:
        return arguments["bytes_read"], arguments["bytes_written"]
    # The plan's own numbers are for the sizes that it was made at.
    total = sum(t.untyped_storage().nbytes() for t in tensors)
    hinted = max(1, arguments["bytes_read"] + arguments["bytes_written"])
    read = total * arguments["bytes_read"] // hinted
    return read, total - read


def _time_cpu(run: Callable[[], Any], repeat: int) -> float:
    for _ in range(3):
        run()
    start = time.perf_counter()
    run()
    inner = max(1, int(50e-6 / max(time.perf_counter() - start, 1e-9)))  # a clock reading must not count
    samples = []
    for _ in range(repeat):
        start = time.perf_counter()
        for _ in range(inner):
            run()
        samples.append((time.perf_counter() - start) / inner)
    return statistics.median(samples)


def _time_cuda(run: Callable[[], Any], repeat: int) -> float:
    flush = torch.empty(_CACHE_BYTES, dtype=torch.uint8, device="cuda")
    for _ in range(3):
        run()
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(repeat)]
    for start, end in events:
        flush.zero_()
        start.record()
        run()
        end.record()
    torch.cuda.synchronize()
    return statistics.median(start.elapsed_time(end) / 1e3 for start, end in events)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m cxxinductor.time_kernel", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="what CXXINDUCTOR_DUMP=source wrote for a graph")
    parser.add_argument("kernel", help="its name, as in kernels/README.txt")
    parser.add_argument("--size", action="append", default=[], metavar="s0=128", help="value of a symbol; may be repeated")
    parser.add_argument("--repeat", type=int, default=100, help="launches timed")
    parser.add_argument("--check", action="store_true", help="compare with the interpreter first")
    parsed = parser.parse_args(arguments)
    try:
        symbols = {name: int(value) for name, value in (item.split("=", 1) for item in parsed.size)}
    except ValueError:
        parser.error("--size expects name=integer")
    try:
        print(time_kernel(parsed.folder, parsed.kernel, symbols=symbols, repeat=parsed.repeat, check=parsed.check))
    except (UserError, RuntimeError) as error:
        print(f"time_kernel: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
