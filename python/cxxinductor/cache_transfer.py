"""Carries entries of the cache on disk (AOTAutograd's results, plans, kernels) to other processes and hosts: through
``torch.compiler.save_cache_artifacts`` and ``load_cache_artifacts``, and through a store that the user sets.

What comes back is unpickled and executed. Artifacts are the user's to trust, as those of Inductor are. A store's entries are used only if they
were signed with the user's secret, or where the user trusts whoever writes to it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
import warnings
from typing import Any, Protocol

from torch.compiler._cache import CacheArtifact, CacheArtifactFactory, CacheArtifactManager

from . import _C, config
from .errors import UserError

_DIGEST_SIZE = hashlib.sha256().digest_size
_SERVING_THREADS = 4
_PATIENCE = 10_000  # milliseconds that an answer of a store may take


@CacheArtifactFactory.register
class CxxinductorCacheArtifact(CacheArtifact):
    """An entry's file. Loading writes it to the folder that the environment's options name (CXXINDUCTOR_CACHE_DIR).

    An entry that a compile used is read when it is saved, which few processes do. If it is gone by then it is saved as an empty file, which
    loading refuses. Its name follows from its content, so that artifacts of one name are one.
    """

    def __init__(self, key: str, content: bytes | _C.Options):
        object.__setattr__(self, "key", key)
        object.__setattr__(self, "_content", content)

    @property
    def content(self) -> bytes:
        content = self._content
        return content if isinstance(content, bytes) else _C.cache_read_file(self.key, content) or b""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CxxinductorCacheArtifact) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @staticmethod
    def encode(content: bytes | _C.Options) -> bytes | _C.Options:
        return content

    def populate_cache(self) -> None:
        _C.cache_write_file(self.key, self.content, config.resolve(None))

    @staticmethod
    def type() -> str:
        return "cxxinductor"


def record_used(options: "_C.Options") -> None:
    """Entries that compiles read or wrote go into what torch.compiler.save_cache_artifacts saves next."""
    for name in sorted(_C.cache_take_used(options)):
        CacheArtifactManager.record_artifact(CxxinductorCacheArtifact.type(), name, options)


class RemoteCache(Protocol):
    """What set_remote_cache takes. Both functions are called by threads of their own, several at a time."""

    def get(self, name: str) -> bytes | None:
        """What was put under this name, or None."""

    def put(self, name: str, content: bytes) -> None:
        """Keeps the bytes; names are short and made of hexadecimal digits and a dash."""


def set_remote_cache(store: RemoteCache | None, *, secret: bytes | None = None, trusted: bool = False) -> None:
    """Sets a store that compiles ask for entries that the cache on disk lacks, and that gets those they write. One per process.

    Names contain hashes of what an entry follows from and of the library's build, so that hosts with other builds may share a store.
    Whatever the store raises becomes a warning, and the compile goes on without it; so it does, for a minute, when an answer takes 10 seconds.

    Args:
        store: an object with ``get(name)`` and ``put(name, content)``; None: no store any more.
        secret: bytes; entries are signed with it (HMAC-SHA256), and those that are not are ignored.
        trusted: without a secret: whoever can write to the store may execute code in this process. Entries then have a digest, which finds
            damage alone.

    Raises:
        UserError: neither a secret nor trusted was given, the secret is not bytes, or the store lacks get or put.
    """
    if store is None:
        _serve(None)
        return
    if not secret and not trusted:
        raise UserError("set_remote_cache: expected a secret that signs entries, or trusted=True: what the store gives is executed")
    if secret is not None and not isinstance(secret, bytes):
        raise UserError(f"set_remote_cache: expected bytes as secret, found {type(secret).__name__}")
    if lacks := [name for name in ("get", "put") if not callable(getattr(store, name, None))]:
        raise UserError(f"set_remote_cache: expected a store with get and put, found {type(store).__name__} without {' and '.join(lacks)}")
    _serve(_CheckedStore(store, secret or b""))


class _Server:
    """Threads that answer what compiles ask of a store: those that compile run nothing of Python's."""

    current: _Server | None = None

    def __init__(self, store: _CheckedStore):
        self._store = store
        self._requests = _C.open_remote_cache(_PATIENCE)
        self.start()

    def start(self) -> None:
        for number in range(_SERVING_THREADS):
            threading.Thread(target=self._serve, daemon=True, name=f"cxxinductor remote cache {number}").start()

    def close(self) -> None:
        self._requests.close()

    def _serve(self) -> None:
        while request := self._requests.next():
            number, name, file = request
            answer = None
            try:
                answer = self._store.get(name) if file is None else self._store.put(name, file)
            except BaseException as error:  # a warning that is an error in this program, among others: the thread has more to answer
                threading.excepthook(threading.ExceptHookArgs((type(error), error, error.__traceback__, threading.current_thread())))
            self._requests.answer(number, answer)


def _serve(store: _CheckedStore | None) -> None:
    if _Server.current is not None:
        _Server.current.close()
    _Server.current = None if store is None else _Server(store)


def _serve_in_child() -> None:
    if _Server.current is not None:
        _Server.current.start()


os.register_at_fork(after_in_child=_serve_in_child)


class _CheckedStore:
    def __init__(self, store: Any, secret: bytes):
        self._store = store
        self._secret = secret

    def get(self, name: str) -> bytes | None:
        try:
            content = self._store.get(name)
            if content is None:
                return None
            signature, file = bytes(content[:_DIGEST_SIZE]), bytes(content[_DIGEST_SIZE:])
        except Exception as error:
            return self._warn("get", error)
        return file if hmac.compare_digest(signature, self._signature(name, file)) else None

    def put(self, name: str, file: bytes) -> None:
        try:
            self._store.put(name, self._signature(name, file) + file)
        except Exception as error:
            self._warn("put", error)

    def _signature(self, name: str, file: bytes) -> bytes:
        return hmac.digest(self._secret, name.encode() + b"\n" + file, "sha256")

    @staticmethod
    def _warn(what: str, error: Exception) -> None:
        warnings.warn(f"cxxinductor: the remote cache's {what} failed: {type(error).__name__}: {error}", stacklevel=2)
