"""Builds the C++ libraries with CMake and puts them into the package; everything else is in pyproject.toml."""

import os
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent


class CMakeBuild(build_ext):
    """Runs CMake and Ninja, and installs what they made into the package: libraries, program, headers, files for CMake and pkg-config."""

    def run(self):
        package = Path(self.get_ext_fullpath("cxxinductor._C")).resolve().parent
        package.mkdir(parents=True, exist_ok=True)
        build, tag = self.built(), sys.implementation.cache_tag
        if self.inplace:
            for library in ("libcxxinductor.so", f"{tag}/_C.so"):
                self.copy_file(str(build / "lib" / library), str(package))
            return
        for component in ("wheel", f"wheel-{tag}"):
            subprocess.check_call(["cmake", "--install", str(build), "--strip", "--component", component, "--prefix", str(package)])
        if not (package / "_C.so").exists():
            raise SystemExit(f"{build} has no module for {tag}: it was configured for other interpreters")

    def built(self):
        """A folder where everything is built: that of CXXINDUCTOR_BUILD_DIR, made before (tools/build_wheels.py), or one of our own."""
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
                f"-DPython_EXECUTABLE={sys.executable}", "-DCXXINDUCTOR_TESTS=OFF", "-DCXXINDUCTOR_EXAMPLES=OFF",
            ]
        )
        jobs = os.environ.get("MAX_JOBS", str(os.cpu_count() or 2))
        subprocess.check_call(["cmake", "--build", str(build), "--target", "cxxinductor_python", "cxxinductor_program", "-j", jobs])
        return build


setup(ext_modules=[Extension("cxxinductor._C", sources=[])], cmdclass={"build_ext": CMakeBuild})
