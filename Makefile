# What there is to do, for people; the build itself is CMake's. `make help` lists it.
JOBS ?= $(shell nproc)
PYTHON := /usr/bin/python3
PREFIX ?= /usr/local
STEPS ?=
SEED ?= 3
COUNT ?= 1000
AREA ?=
AREAS = $(or $(AREA),volumes copies outputs)
ARGS ?=
SYSTEMS ?=
export CMAKE_BUILD_PARALLEL_LEVEL = $(JOBS)

.DEFAULT_GOAL := help
.PHONY: help setup build test histories check check-long soak deb debs image demo bench-staging bench-limits bench-slurm bench-fleet bench-stage-out bench-memory bench-models bench-live release format lint install may-install uninstall clean try

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s%s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## installs what building and testing needs (Debian 12, root)
	tools/setup.sh test

build:  ## the programs, into build/release
	cmake --preset release
	cmake --build --preset release

try:  ## the daemon on a simulated host, without root: spark-stage status as it changes, until ^C
	@command -v cmake >/dev/null || tools/setup.sh build
	cmake --preset release
	cmake --build --preset release --target spark-staged spark-stage
	@$(PYTHON) tools/try.py build/release

test:  ## the fast loop: debug build and unit tests, in shards, as most of them wait
	cmake --preset dev
	cmake --build --preset dev
	ctest --test-dir build/dev --output-on-failure --no-tests=error -R '^Configs'
	$(PYTHON) tools/shards.py build/dev $$(($(JOBS) * 6))

histories:  ## random histories in a simulated world: make histories AREA=volumes SEED=7 COUNT=1000; ARGS=--help tells more
	cmake --preset release -DSPARK_TESTS=ON
	cmake --build --preset release --target $(AREAS:%=spark_%_histories)
	@failed=0; for area in $(AREAS); do \
	  build/release/tests/histories/$$area/spark_$${area}_histories --seed $(SEED) --count $(COUNT) $(ARGS) || failed=1; \
	done; exit $$failed

check:  ## everything that tests, from nothing; some of it: make check STEPS="lint unit"
	@test -x $(PYTHON) || tools/setup.sh test
	@$(PYTHON) tools/check.py $(STEPS)

check-long:  ## what takes hours: arm64, other Debians, long fuzzing, many volumes, long walks of faults (root)
	@test -x $(PYTHON) || tools/setup.sh test
	@$(PYTHON) tools/check.py --long $(STEPS)

soak: build  ## a random walk of faults: make soak SEED=7 STEPS=100; SPARK_VM_KERNEL=newest for the newest kernel
	SPARK_SOAK_SEED=$(SEED) SPARK_SOAK_STEPS=$(or $(STEPS),15) $(PYTHON) -m pytest tests/vm/test_soak.py -q -s

deb:  ## the Debian package of this release and architecture, in build/deb, checked by lintian
	tools/deb.sh $(JOBS)

debs:  ## the packages for Debian 12 and 13, amd64 and arm64, in build/debs, each tested (root, an hour)
	tools/setup.sh others
	for system in debian-12 debian-13; do \
	  for arch in amd64 arm64; do tools/deb-for.sh $$system $$arch $(JOBS) || exit 1; done; \
	done
	rm -rf build/debs && mkdir -p build/debs && cp build/debian-1[23]-*/deb/*.deb build/debs/

release:  ## packages of this version for all systems, installed once each, with notes and checksums (root, hours); SYSTEMS=debian-12-amd64: one alone
	tools/release.sh $(JOBS) $(SYSTEMS)

image:  ## the container image, of Debian 13, in build/image (root): make image ARCH=arm64; SYSTEM=debian-12
	tools/setup.sh others
	tools/deb-for.sh $(or $(SYSTEM),debian-13) $(or $(ARCH),$$(dpkg --print-architecture)) $(JOBS)
	tools/image.sh $(or $(SYSTEM),debian-13) $(or $(ARCH),$$(dpkg --print-architecture)) \
	  build/$(or $(SYSTEM),debian-13)-$(or $(ARCH),$$(dpkg --print-architecture))/deb

# In a build of its own, quicker to make: without Slurm's plugin and the Kubernetes driver, and less optimised.
demo:  ## a target and a host in virtual machines: discover, mount, stage, verify, measure
	tools/setup.sh demo
	@$(PYTHON) tests/vm/prepare.py 6.1 & prepared=$$!; cmake --preset demo && cmake --build --preset demo && wait $$prepared
	SPARK_VM_BUILD=build/demo $(PYTHON) tests/vm/demo.py

bench-staging:  ## spark-stage copy beside cp, rsync and others (root, 16 GiB, half an hour); ARGS=--help tells more
	tools/setup.sh bench
	cmake --preset release
	cmake --build --preset release --target spark-stage
	$(PYTHON) tools/benchmarks/staging --long $(ARGS)

bench-limits:  ## what 300 volumes cost the daemon: memory, CPU at rest, answers (root); ARGS=--help tells more
	cmake --preset release
	cmake --build --preset release --target spark-staged
	$(PYTHON) tools/benchmarks/limits $(ARGS)

bench-slurm:  ## what srun --stage costs a job whose data is there already (root); ARGS=--help tells more
	tools/setup.sh test
	cmake --preset release
	cmake --build --preset release --target spark-staged spark-stage spank_spark_stage
	$(PYTHON) tools/benchmarks/slurm $(ARGS)

bench-fleet:  ## what a volume serves when several hosts stage one dataset, with and without a fleet (root); ARGS=--help tells more
	tools/setup.sh test
	cmake --preset release
	cmake --build --preset release --target spark-staged spark-stage
	$(PYTHON) tools/benchmarks/fleet $(ARGS)

bench-stage-out:  ## a checkpoint on its way to a volume, beside cp and rsync, and what a reader of its drive loses (root)
	tools/setup.sh test
	cmake --preset release
	cmake --build --preset release --target spark-staged
	$(PYTHON) tools/benchmarks/stage_out $(ARGS)

bench-memory:  ## the memory that copies hold after a reader, with cache.page_cache leave and drop (root); ARGS=--help tells more
	tools/setup.sh test
	cmake --preset release
	cmake --build --preset release --target spark-staged
	$(PYTHON) tools/benchmarks/memory $(ARGS)

bench-models:  ## a model from one host to another, beside rsync and rclone: rate, reads, memory, CPU (root); ARGS=--help tells more
	tools/setup.sh bench
	cmake --preset release
	cmake --build --preset release --target spark-staged
	$(PYTHON) tools/benchmarks/models $(ARGS)

bench-live:  ## training while it stages, beside staging first, from a source of 200 MB/s (root); ARGS=--help tells more
	tools/setup.sh test
	cmake --preset release
	cmake --build --preset release --target spark-staged spark-stage
	$(PYTHON) tools/benchmarks/live $(ARGS)

format:  ## clang-format over all C++ and C
	find base nvmetcp staging fleet bench daemon migration doctor cli slurm csi tests -name '*.[ch]pp' -o -name '*.[ch]' | xargs clang-format-14 -i

lint:  ## all static checks but clang-tidy
	$(PYTHON) tools/lint/run.py

may-install:
	@if [ -z "$(DESTDIR)" ]; then tools/installed.sh check $(PREFIX); fi

install: may-install build  ## what was built, below $(DESTDIR)$(PREFIX), and the group and folders that it needs; restarts a running daemon
	cmake --install build/release --prefix $(PREFIX)
	@if [ -z "$(DESTDIR)" ]; then tools/installed.sh add $(PREFIX); fi

uninstall:  ## what make install placed, and mounts that would be left without an owner; keeps configuration, keys and data
	@tools/installed.sh remove $(PREFIX)

clean:  ## everything that was built or cached
	rm -rf build
