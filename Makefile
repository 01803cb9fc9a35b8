# shardmark: `make run` on a fresh machine installs what is needed, builds, measures and prints tables. See `make help`.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

SUITE  ?= suites/quick.yaml
RANKS  ?=
STEPS  ?=
ARGS   ?=
TESTS  ?=
FILES  ?=
JOBS   ?= 2
LAUNCHES ?= 5
FUZZ_SECONDS ?= 600
FAULTS ?= 20
PREFIX ?= /usr/local
ANALYSIS ?=

BUILD   := build
NINJA    = ninja -C $(BUILD)
QUIETLY  = | sed -u '/Entering directory/d; /Re-checking globbed/d; /no work to do/d'
SOURCES  = $(shell git ls-files --cached --others --exclude-standard '*.h' '*.cpp')

##@ Two commands that are enough on a fresh machine
run: build  ## Build, run SUITE on all GPUs (without any: on the CPU's cores), print what the new study says
	@jobs/sweep.sh $(SUITE) --report $(if $(RANKS),-n $(RANKS)) -- $(if $(STEPS),--steps $(STEPS)) $(ARGS)

test: tests  ## Build and run every test that needs no GPU (TESTS=regex: only those; TESTS=quick: three minutes' worth)
	@cd $(BUILD) && ctest -j 4 --output-on-failure $(if $(filter quick,$(TESTS)),-L '^(unit|threads|quick)$$',$(if $(TESTS),-R '$(TESTS)'))

soak: tests  ## Every long test: sanitizers, fuzzing, FAULTS=20 of each fault, clusters, a bare machine (hours)
	@$(MAKE) sanitize
	@$(MAKE) fuzz
	@$(MAKE) bare-root
	@$(MAKE) bare-bundle
	@$(MAKE) site-build
	@cd $(BUILD) && FAULTS=$(FAULTS) ctest -C soak -R '^soak/' --output-on-failure

cluster-test: tests  ## The long form of the tests on several nodes of one machine and a real Slurm
	@jobs/bootstrap.sh --cluster
	@cd $(BUILD) && ctest -C soak -R '^soak/cluster/' --output-on-failure

gpu-check: tests  ## On a machine with GPUs: the GPU tests, the GPU suites, training, kernels; 10 minutes, one folder (ARGS)
	@jobs/gpu_check.sh $(ARGS)

bare-root:  ## `make run` and `make test` of the last commit in a bare root made by debootstrap (as root; half an hour)
	@tests/install/bare_root.sh || [[ $$? == 77 ]]
	@tests/install/bare_root.sh container || [[ $$? == 77 ]]

bare-bundle: build  ## The bundle of `make gpu-bundle` in a bare root with nothing but a Python and its torch (as root)
	@jobs/bootstrap.sh --bundle
	@tests/install/bundle_bare_root.sh $(BUILD)/shardmark || [[ $$? == 77 ]]

site-build:  ## Build, install and run with a Torch and an Open MPI from elsewhere, .venv and CUDA hidden (as root; a whole build)
	@tests/cli/site_torch.sh - build || [[ $$? == 77 ]]

##@ Building
build: configure  ## Build the program (build/shardmark); quiet when nothing is to do
	@$(NINJA) shardmark $(QUIETLY)

tests: configure  ## Build the program and all tests
	@$(NINJA) $(QUIETLY)

bootstrap:  ## Install what is missing: Debian packages and .venv (see jobs/bootstrap.sh --help)
	@jobs/bootstrap.sh $(if $(ANALYSIS),--analysis,--meanwhile '$(MAKE) plain')

plain:  # what needs no PyTorch, in the folder of the build
	@if [[ ! -e $(BUILD)/build.ninja ]]; then cmake -S . -B $(BUILD) -G Ninja -DSHARDMARK_ANALYSIS_ONLY=ON; fi
	@$(NINJA) shardmark_plain

configure: bootstrap
	@want=SHARDMARK_ANALYSIS_ONLY:BOOL=$(if $(ANALYSIS),ON,OFF); \
	if [[ ! -e $(BUILD)/build.ninja ]] || ! grep -qx $$want $(BUILD)/CMakeCache.txt; then \
	  cmake -S . -B $(BUILD) -G Ninja -D$$want; fi

install: build  ## Install the program and the suites under PREFIX
	@cmake --install $(BUILD) --prefix $(PREFIX)

gpu-bundle: tests  ## An archive for a machine with GPUs but no network, compiler or packages: build/shardmark-gpu-bundle.tar.xz
	@jobs/bootstrap.sh --bundle
	@jobs/bundle.sh

clean:  ## Remove build/ (studies in results/ and .venv stay)
	@rm -rf $(BUILD)

##@ Looking after the code
kernels: configure  ## Run the micro-benchmarks of our own hot paths (ARGS: Google Benchmark's flags)
	@ninja -C $(BUILD) --quiet shardmark_kernels && $(BUILD)/shardmark_kernels $(ARGS)

overhead: configure  ## Measure what harness and strategies cost on RANKS=2 cores: paired turns, LAUNCHES=5
	@ninja -C $(BUILD) --quiet shardmark_overhead
	@for launch in $$(seq $(LAUNCHES)); do OMP_NUM_THREADS=1 mpirun --allow-run-as-root --bind-to core \
	  -n $(or $(RANKS),2) $(BUILD)/shardmark_overhead; done | suites/overhead/summarize.awk

peers: configure  ## Compare with PyTorch (plain, compiled, DDP, FSDP2), MPI_Allreduce ... in turns: RANKS, LAUNCHES=5, ARGS
	@ninja -C $(BUILD) --quiet shardmark shardmark_libtorch_loop shardmark_mpi_allreduce
	@.venv/bin/python suites/peers/peers.py $(if $(RANKS),--ranks $(RANKS)) --launches $(LAUNCHES) $(ARGS)

SANITIZED = $(BUILD)/sanitize
sanitize: bootstrap  ## Build with AddressSanitizer and UndefinedBehaviorSanitizer; run the tests of one process and of 2 ranks; then odr
	@if [[ ! -e $(SANITIZED)/build.ninja ]]; then cmake -S . -B $(SANITIZED) -G Ninja -DSHARDMARK_SANITIZE=ON \
	  -DSHARDMARK_ANALYSIS_ONLY=$(if $(ANALYSIS),ON,OFF) >/dev/null; fi
	@ninja -C $(SANITIZED) --quiet
	@cd $(SANITIZED) && ctest --output-on-failure -L '^(unit|threads|fuzz)$$' && ctest --output-on-failure -R '^mpi/.*_2$$'
	@$(if $(ANALYSIS),true,$(MAKE) odr)

# Link-time optimization sees every definition of a type; without optimization, as only its warnings are wanted.
ODR = $(BUILD)/odr
odr: bootstrap  ## Link the program with -Wodr as an error: no two types of one name; compile each file by itself (10 minutes)
	@if [[ ! -e $(ODR)/build.ninja ]]; then cmake -S . -B $(ODR) -G Ninja -DSHARDMARK_TESTS=OFF -DCMAKE_BUILD_TYPE=Odr \
	  -DCMAKE_UNITY_BUILD=OFF \
	  -DCMAKE_CXX_FLAGS_ODR='-O0 -flto' -DCMAKE_EXE_LINKER_FLAGS='-flto=2 -Wodr -Werror=odr' >/dev/null; fi
	@ninja -C $(ODR) --quiet shardmark

FUZZ = $(BUILD)/fuzz
fuzz:  ## Look for inputs that break a reader or the suite parser: libFuzzer, FUZZ_SECONDS=600 for each target
	@jobs/bootstrap.sh --analysis --fuzz
	@if [[ ! -e $(FUZZ)/build.ninja ]]; then cmake -S . -B $(FUZZ) -G Ninja -DSHARDMARK_ANALYSIS_ONLY=ON \
	  -DSHARDMARK_FUZZ=ON -DCMAKE_C_COMPILER=clang-16 -DCMAKE_CXX_COMPILER=clang++-16 >/dev/null; fi
	@ninja -C $(FUZZ) --quiet suite_fuzz journal_fuzz published_fuzz import_fuzz
	@for target in suite journal published import; do mkdir -p $(FUZZ)/found/$$target; echo "fuzz: $$target, $(FUZZ_SECONDS) s"; \
	  seeds=tests/fuzz/corpus/$$target; [[ -d $$seeds ]] || seeds=tests/data/$$target; \
	  $(FUZZ)/$${target}_fuzz -max_total_time=$(FUZZ_SECONDS) -timeout=20 -rss_limit_mb=3000 -print_final_stats=1 \
	    -artifact_prefix=$(FUZZ)/ $(FUZZ)/found/$$target $$seeds \
	    >$(FUZZ)/$$target.log 2>&1 || { tail -n 40 $(FUZZ)/$$target.log; exit 1; }; \
	  grep -E 'number_of_executed_units|peak_rss' $(FUZZ)/$$target.log; done

readmes: build  ## Renew what the READMEs show of the program: printed blocks, and pictures of results/reference
	@results/pictures.sh $(BUILD)/shardmark
	@tests/cli/readmes.sh $(BUILD)/shardmark --write

format:  ## Format the sources as .clang-format says
	@jobs/bootstrap.sh --lint && clang-format-16 -i $(SOURCES)

format-check:  ## Fail where `make format` would change something
	@jobs/bootstrap.sh --lint && clang-format-16 --dry-run -Werror $(SOURCES)

# clang cannot read g++'s precompiled headers: the lint reads the headers themselves.
lint: configure  ## clang-tidy over the sources that differ from the last commit (FILES="a.cpp b.cpp", FILES=all)
	@jobs/bootstrap.sh --lint && cmake -S . -B $(BUILD)/lint -G Ninja -DCMAKE_UNITY_BUILD=OFF >/dev/null
	@sed -i -E -e 's|-include [^ ]*/shardmark_torch_pch.dir/cmake_pch.hxx|-include $(CURDIR)/src/device/pch.h|' \
	  -e 's|-include [^ ]*/shardmark_pch.dir/cmake_pch.hxx|-include $(CURDIR)/src/base/pch.h|' \
	  -e 's|-include [^ ]*/cmake_pch.hxx|-include $(CURDIR)/tests/pch.h|' $(BUILD)/lint/compile_commands.json
	@case "$(FILES)" in \
	  all) files=$$(git ls-files '*.cpp' | grep -vE '^tests/(cli|faults)/') ;; \
	  '') files=$$(git ls-files --modified --others --exclude-standard '*.cpp' | xargs -r ls -d 2>/dev/null || true) ;; \
	  *) files="$(FILES)" ;; \
	esac; \
	xargs -r -n 1 -P $(JOBS) clang-tidy-16 -p $(BUILD)/lint --quiet --extra-arg=-Wno-unknown-warning-option \
	  <<<"$$files" 2> >(grep -v 'warnings generated' >&2)

help:  ## Print this
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '%s\n' '' 'Variables' \
	  '  SUITE=suites/quick.yaml  RANKS=4  STEPS=20  ARGS="flags of shardmark run"   for make run' \
	  '  TESTS=regex or quick   for make test     PREFIX=/usr/local   for make install     FILES, JOBS=2   for make lint' \
	  '  FUZZ_SECONDS=600   for make fuzz, make soak     FAULTS=20   for make soak' \
	  '  ANALYSIS=1    build only what needs no rank (plan, launch, submit, report, compare ...): no torch, MPI or CUDA'

.PHONY: run test build tests bootstrap plain configure install clean kernels overhead peers soak cluster-test gpu-check gpu-bundle bare-root bare-bundle site-build sanitize odr fuzz readmes format format-check lint help
