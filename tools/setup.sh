#!/bin/sh
# Installs the packages that spark-stage needs: on Debian 12 or 13 to build and test it, on Ubuntu 24.04 (DGX OS 7) to build it.
# Safe to run twice.
# Usage: tools/setup.sh [SET]                   demo: the programs alone, and virtual machines;
#                                               build: compile and unit tests; package: also the Debian package;
#                                               test (default): all of that, lint, fuzzing and virtual machines;
#                                               others: test, and tools to build arm64's packages and run their
#                                               programs, to make the container image and run podman; cross: packages of their root file systems;
#                                               bench: build, and the contenders of tools/benchmarks/staging
#        tools/setup.sh list SET SYSTEM         only prints the packages; SYSTEM: debian-12, debian-13 or
#                                               ubuntu-24.04
set -eu

# Debian 13 is only used to build and for unit tests; lint, fuzzing and machines run on Debian 12.
packages_of() {  # SET SYSTEM
  case "$2" in
    debian-12) boost=1.81 unit_folders=systemd ;;
    debian-13 | ubuntu-24.04) boost=1.83 unit_folders=systemd-dev ;;
    *) echo "setup: made for Debian 12 and 13 and Ubuntu 24.04, this is $2 - install what its archive has for the" \
         "packages in tools/setup.sh" >&2
       return 2 ;;
  esac
  compile="ca-certificates cmake g++ make ninja-build pkgconf libexpected-dev libcli11-dev"
  tools="$compile git fio gnuplot-nox rsync e2fsprogs xfsprogs util-linux python3 strace attr acl iproute2 iputils-ping"
  of_programs="libnvme-dev libmount-dev libblkid-dev libext2fs-dev
    comerr-dev libsystemd-dev libyaml-cpp-dev libspdlog-dev prometheus-cpp-dev liburing-dev libxxhash-dev libssl-dev
    libsqlite3-dev libboost$boost-dev libboost-json$boost-dev"
  libraries="$of_programs libslurm-dev libjson-c-dev libgrpc++-dev libprotobuf-dev libgtest-dev libgmock-dev"
  # They generate code for any architecture, and run on this one.
  generators="protobuf-compiler protobuf-compiler-grpc"
  package="build-essential debhelper lintian fakeroot $unit_folders"
  machines="qemu-system-x86 qemu-utils mmdebstrap debian-archive-keyring uidmap systemd e2fsprogs xfsprogs util-linux python3 kmod zstd"
  test="$machines clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev
    python3-pytest openssh-client
    dosfstools tmux shellcheck mandoc bash fish zsh
    chromium chromium-driver python3-selenium fonts-dejavu-core
    prometheus curl python3-jsonschema python3-yaml libnss-wrapper
    slurmctld slurmd slurm-client munge
    python3-grpcio python3-protobuf python3-lmdb python3-numpy"
  case "$1" in
    demo) echo "$compile $of_programs $machines" ;;
    build) echo "$tools $generators $libraries" ;;
    package) echo "$tools $generators $libraries $package" ;;
    cross) echo "$tools $generators $package crossbuild-essential-arm64 $(for each in $libraries; do echo "$each:arm64"; done)" ;;
    test) echo "$tools $generators $libraries $package $test" ;;
    others) echo "$tools $generators $libraries $package $test arch-test qemu-user-static qemu-system-arm buildah podman crun busybox-static" ;;
    bench) echo "$tools $generators $libraries rclone fpart openssh-server" ;;
    *) echo "setup: no package set is called '$1' - use demo, build, package, test, others, cross or bench" >&2; return 2 ;;
  esac
}

install_packages() {  # NAME…
  missing=""
  for package in "$@"; do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing="$missing $package"
  done
  if [ -z "$missing" ]; then echo "setup: everything is installed"; return; fi
  if [ "$(id -u)" -ne 0 ]; then echo "setup: root is needed to install:$missing" >&2; return 1; fi
  echo "setup: installing$missing"
  export DEBIAN_FRONTEND=noninteractive
  # An unreadable source may be irrelevant; if not, the installation fails.
  apt-get update -q || echo "setup: apt-get update failed, going on with the package lists at hand" >&2
  # Debian 12's default Boost 1.74 conflicts with 1.81; apt swaps them in one go.
  # shellcheck disable=SC2086
  apt-get install -y -q --no-install-recommends $missing
  echo "setup: done"
}

if [ "${1:-}" = list ]; then
  packages_of "${2:-test}" "${3:-debian-12}"
else
  system=$(. /etc/os-release && echo "$ID-${VERSION_ID:-}")
  packages=$(packages_of "${1:-test}" "$system")
  # shellcheck disable=SC2086
  install_packages $packages
fi
