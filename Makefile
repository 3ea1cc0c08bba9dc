# make demo and make test do everything from an empty clone; see README.md.
PY := .venv/bin/python
BUILD := build/release
JOBS ?= $(shell nproc)
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
export CCACHE_DEPEND := 1
export CCACHE_SLOPPINESS := pch_defines,time_macros
# Set in many containers. Without bytecode on disk a process that imports torch and compiles takes three times as long, and tests start many.
unexport PYTHONDONTWRITEBYTECODE
# Tests run side by side: threads of OpenMP that wait leave the cores to the others, instead of spinning. Files of models take a third less time.
test gpu-test: export OMP_WAIT_POLICY := passive

.PHONY: setup build demo test gpu-test wheel wheel-test bench asan clean help

help:
	@echo "make demo      install what is missing, build, compile a transformer, show speed, error and kernels"
	@echo "make test      every suite that this machine can run"
	@echo "make gpu-test  the suites that need a CUDA device"
	@echo "make wheel     a wheel for each CPython of 3.11, 3.12 and 3.13 that is found, into dist"
	@echo "make wheel-test  each of them in a fresh environment with PyTorch from pip: downloads, minutes"
	@echo "make asan      the C++ suites that need neither torch nor a compiler, under sanitizers; part of make test"
	@echo "make clean     removes the build"
	@echo "make bench     benchmarks against eager and Inductor, into build/benchmarks"

setup:
	@tools/setup.sh

build: setup
	@mkdir -p build
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release -DPython_EXECUTABLE=$(CURDIR)/$(PY) > build/configure.log 2>&1 \
	  || { cat build/configure.log; exit 1; }
	@cmake --build $(BUILD) -j $(JOBS) --target cxxinductor_python cxxinductor_program
	@$(PY) tools/install_inplace.py $(BUILD)

demo: build
	@$(PY) examples/demo.py

test: build
	@cmake --build $(BUILD) -j $(JOBS)
	@tools/run_tests.sh $(BUILD)

gpu-test: build
	@cmake --build $(BUILD) -j $(JOBS)
	@tools/run_gpu_tests.sh $(BUILD)

wheel: setup
	@$(PY) tools/build_wheels.py --jobs $(JOBS)

wheel-test: wheel
	@tools/test_wheel.sh

bench: build
	@cmake --build $(BUILD) -j $(JOBS) --target libtorch_benchmark training_step
	@$(PY) benchmarks/run.py

asan:
	@cmake --preset asan > build/asan.log 2>&1 || { cat build/asan.log; exit 1; }
	@cmake --build --preset asan --target core_tests -j $(JOBS)
	@LSAN_OPTIONS=suppressions=$(CURDIR)/tools/leaks.supp:print_suppressions=0 \
	  ctest --test-dir build/asan --output-on-failure -L core -j $(JOBS)

clean:
	@rm -rf build python/cxxinductor/*.so
