"""Packages and exported models: the Python side of <cxxinductor/package.h> and <cxxinductor/cxxinductor.h>."""

from __future__ import annotations

import io
import os
from typing import Any, Mapping, Sequence

import torch

from . import _C, config, errors, trees


def package(
    model: torch.export.ExportedProgram | torch.jit.ScriptModule,
    path: str | os.PathLike[str],
    *,
    archs: Sequence[str] = (),
    weights_beside: bool = False,
    signing_key: str | os.PathLike[str] = "",
    options: Mapping[str, Any] | None = None,
) -> None:
    """Compiles an exported program into one file that loads without compiling, in Python, C++ and C.

    Of a module that ``cxxinductor.optimize`` returned it saves a TorchScript file, with all that was compiled for its calls so far: any
    program that has loaded libcxxinductor runs it, without compiling where CXXINDUCTOR_TRUSTED_KEYS lists the key or CXXINDUCTOR_TRUST is 1.

    Args:
        archs: architectures of GPUs (``"sm_80"``, ``"sm_90a"``) and CPUs (``"x86-64-v3"``) to compile for. Of a kind that is not
            listed, that of this machine. Code for a GPU is compiled without one.
        weights_beside: write the weights into ``path + ".weights"``, which has to stay beside the package.
        signing_key: a file with an Ed25519 private key, as ``openssl genpkey -algorithm ed25519`` writes it.
        options: names of ``cxxinductor.option_table()``; of a TorchScript module they are those of ``optimize``.

    Raises:
        Unsupported: the program has what cannot be compiled; the message says what.
        UserError: the file cannot be written, or an argument is wrong.
    """
    if isinstance(model, torch.jit.ScriptModule):
        if weights_beside or options:
            raise errors.UserError("package: expected neither weights_beside nor options beside a TorchScript module")
        _C.package_torchscript(model._c, os.fspath(path), list(archs), os.fspath(signing_key))
        return
    if not isinstance(model, torch.export.ExportedProgram):
        raise errors.UserError(f"package: expected what torch.export.export or optimize returned, found {type(model).__name__}")
    archive = io.BytesIO()
    torch.export.save(model, archive)
    _C.package(
        archive.getvalue(), os.fspath(path), list(archs), weights_beside, os.fspath(signing_key), config.resolve(options)
    )


class LoadedModel:
    """A model that ``load`` read. Thread-safe, but for models that update their buffers."""

    def __init__(self, model: _C.Model):
        self._model = model
        self._trees: trees.ModelTrees | None = None

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the model as ``ExportedProgram.module()`` does: takes and returns the containers that it was exported with.

        Of a file that does not say how its arguments are nested, they are the leaves, and so are its results: a list.

        Raises:
            UserError: the arguments are nested otherwise, or an input is wrong; the message names it. Types of containers have to be
                registered as they were at the export (``torch.export.register_dataclass``, ``torch.utils._pytree.register_pytree_node``).
        """
        if self._trees is None:
            self._trees = trees.ModelTrees(self._model.input_structure(), self._model.output_structure())
        return self._trees.results(self._model.run(self._trees.leaves(args, kwargs, self._model.input_types)))

    def run_leaves(self, *inputs: Any) -> list[Any]:
        """Runs the model on the leaves of its arguments, in the order of ``input_types()``; returns the leaves of its result."""
        return self._model.run(inputs)

    def input_types(self) -> list[str]:
        """``"images: f32[b, 3, 224, 224] on cpu where 1 <= b <= 64"``, one for each input of ``run_leaves``."""
        return self._model.input_types()

    def output_types(self) -> list[str]:
        """The same, one for each result of ``run_leaves``."""
        return self._model.output_types()

    def weight_names(self) -> list[str]:
        """Parameters, buffers and constants, by the names that the module gave them."""
        return self._model.weight_names()

    def weight(self, name: str) -> torch.Tensor:
        """The tensor itself: writes to it change the model."""
        return self._model.weight(name)

    def explain(self) -> str:
        """What became of the model: kernels, calls of ATen with reasons, memory, times."""
        return self._model.explain()


def load(path: str | os.PathLike[str], *, options: Mapping[str, Any] | None = None) -> LoadedModel:
    """Reads a package, or a file of ``torch.export.save``, which is compiled.

    A package's machine code is run if option ``trusted_keys`` lists the key that signed it, or under option ``trust``; otherwise its calls
    are compiled. Files are untrusted otherwise.

    Args:
        options: names of ``cxxinductor.option_table()``.

    Raises:
        UserError: the file cannot be read; the message names the place, what was expected and found.
        Unsupported: the model has what this version cannot read.
    """
    return LoadedModel(_C.load(os.fspath(path), config.resolve(options)))
