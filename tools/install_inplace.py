"""Makes the built tree importable from .venv: libraries beside the Python files, and the package's metadata (the backend's
entry point) registered in development mode. Usage: install_inplace.py BUILD_DIR"""

import importlib.metadata
import shutil
import subprocess
import sys
from pathlib import Path

root = Path(__file__).resolve().parent.parent
build = Path(sys.argv[1])
package = root / "python" / "cxxinductor"

for library in ("libcxxinductor.so", f"{sys.implementation.cache_tag}/_C.so"):
    source, target = build / "lib" / library, package / Path(library).name
    if not target.exists() or source.stat().st_mtime > target.stat().st_mtime:
        target.unlink(missing_ok=True)  # a running process may have the old file mapped
        shutil.copy2(source, target)

try:
    importlib.metadata.distribution("cxxinductor")
except importlib.metadata.PackageNotFoundError:
    import os

    subprocess.check_call(
        [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-build-isolation", "--no-deps", "-e", "."],
        cwd=root,
        env={**os.environ, "CXXINDUCTOR_BUILD_DIR": str(build.resolve())},
    )
