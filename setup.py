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
        package.mkdir(parents=True, exist_ok=True)
        jobs = os.environ.get("MAX_JOBS", str(os.cpu_count() or 2))
        build = self.configured_build()
        subprocess.check_call(["cmake", "--build", str(build), "--target", "cxxinductor_python", "cxxinductor_program", "-j", jobs])
        for library in ("libcxxinductor.so", "_C.so"):
            self.copy_file(str(build / "lib" / library), str(package / library))
        if not self.inplace:  # the program, and what C++ programs are built with
            subprocess.check_call(["cmake", "--install", str(build), "--prefix", str(package)])

    def configured_build(self):
        """The folder that CXXINDUCTOR_BUILD_DIR names, configured by whoever made it (make build); else one of our own."""
        if given := os.environ.get("CXXINDUCTOR_BUILD_DIR"):
            return Path(given).resolve()
        build = Path(self.build_temp).resolve()
        build.mkdir(parents=True, exist_ok=True)
        # What an earlier run found may lie in a build environment that pip has deleted since.
        (build / "CMakeCache.txt").unlink(missing_ok=True)
        subprocess.check_call(
            [
                "cmake", "-S", str(ROOT), "-B", str(build), "-G", "Ninja",
                f"-DCMAKE_BUILD_TYPE={os.environ.get('CXXINDUCTOR_BUILD_TYPE', 'Release')}",
                f"-DPython_EXECUTABLE={sys.executable}", "-DCXXINDUCTOR_TESTS=OFF", "-DCXXINDUCTOR_WHEEL=ON",
            ]
        )
        return build


setup(ext_modules=[Extension("cxxinductor._C", sources=[])], cmdclass={"build_ext": CMakeBuild})
