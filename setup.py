"""Builds the C++ libraries with CMake and puts them into the package; everything else is in pyproject.toml."""

import os
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent


class CMakeBuild(build_ext):
    """Runs CMake and Ninja; the shared libraries land beside the package's Python files."""

    def run(self):
        package = Path(self.get_ext_fullpath("cxxinductor._C")).resolve().parent
        build = Path(os.environ.get("CXXINDUCTOR_BUILD_DIR", self.build_temp)).resolve()
        jobs = os.environ.get("MAX_JOBS", str(os.cpu_count() or 2))
        package.mkdir(parents=True, exist_ok=True)
        build.mkdir(parents=True, exist_ok=True)
        # What an earlier run found may lie in a build environment that pip has deleted since.
        (build / "CMakeCache.txt").unlink(missing_ok=True)
        subprocess.check_call(
            [
                "cmake", "-S", str(ROOT), "-B", str(build), "-G", "Ninja",
                f"-DCMAKE_BUILD_TYPE={os.environ.get('CXXINDUCTOR_BUILD_TYPE', 'Release')}",
                f"-DPython_EXECUTABLE={sys.executable}", "-DCXXINDUCTOR_TESTS=OFF",
            ]
        )
        subprocess.check_call(["cmake", "--build", str(build), "--target", "cxxinductor_python", "-j", jobs])
        for library in ("libcxxinductor.so", "_C.so"):
            self.copy_file(str(build / "lib" / library), str(package / library))


setup(ext_modules=[Extension("cxxinductor._C", sources=[])], cmdclass={"build_ext": CMakeBuild})
