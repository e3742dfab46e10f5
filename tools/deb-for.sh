#!/bin/sh
# Builds spark-stage's package for another release or architecture, in a root file system of that release, and runs unit
# tests there. Needs root, apt and `tools/setup.sh others`; arm64 is cross-built, its programs run under qemu-user.
# Output in build/SYSTEM-ARCHITECTURE: deb/*.deb, and installed/ with the package's files, for virtual machines. The root
# file system is next to it, made once per package list.
# Usage: tools/deb-for.sh SYSTEM [ARCHITECTURE [JOBS]]      SYSTEM: debian-12 or debian-13
set -eu

suite_of() {  # SYSTEM
  case "$1" in
    debian-12) echo bookworm ;;
    debian-13) echo trixie ;;
    *) echo "deb-for: there is debian-12 and debian-13, not '$1'" >&2; exit 2 ;;
  esac
}

make_root() {  # ROOT SUITE PACKAGES,…
  echo "deb-for: making the root file system (once)"
  rm -rf "$1".new
  architectures=$native
  [ "$arch" = "$native" ] || architectures=$native,$arch
  # In a separate mount namespace: mounts left by a package's script do not stay on this computer.
  unshare --mount --propagation private mmdebstrap --variant=apt --include="$3" --architectures="$architectures" \
    --aptopt='APT::Install-Recommends "false"' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --skip=output/dev --quiet "$2" "$1.new"
  mkdir -p "$1.new/src"
  mv "$1.new" "$1"
}

# The kernel then starts programs of that architecture through the emulator, which it keeps open, so it works in the root as
# well.
register_emulator() {  # by its name
  handlers=/proc/sys/fs/binfmt_misc
  [ -e $handlers/register ] || mount -t binfmt_misc binfmt_misc $handlers
  [ -e "$handlers/$1" ] || cat "/usr/lib/binfmt.d/$1.conf" >$handlers/register
}

# Runs in a separate mount namespace: its mounts end with its last process.
enter_root() {  # ROOT SOURCE BUILD ARCHITECTURE JOBS
  rsync -a --delete --exclude=/build --exclude=/.git "$2/" "$1/src/"  # a package's build writes beside its source
  mkdir -p "$1/src/build"
  mount --bind "$1" "$1"  # a root that is a mount, as on a real machine
  mount --bind "$3" "$1/src/build"
  mount -t proc proc "$1/proc"
  mount --rbind /dev "$1/dev"
  mount --rbind /sys "$1/sys"
  mount -t tmpfs tmpfs "$1/tmp"
  exec chroot "$1" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
    /src/tools/deb-for.sh build-inside "$4" "$5"
}

build_inside() {  # ARCHITECTURE JOBS
  cd /src
  # For another release, the tests of code with other libraries there; for another architecture, all tests.
  tests="spark_config_tests spark_mounts_tests spark_nvmetcp_tests spark_slurm_tests spark_csi_tests" chosen=$tests
  [ "$1" = "$(dpkg --print-architecture)" ] || tests=all chosen='spark_.*'
  echo "deb-for: $(. /etc/os-release && echo "$PRETTY_NAME"), $1, $(g++ --version | head -n 1)," \
    "libnvme $(dpkg-query -W -f '${Version}' "libnvme-dev:$1")"
  tools/deb.sh "$2" "$1"
  rm -rf build/installed
  dpkg-deb -x build/deb/spark-stage_*.deb build/installed
  if [ -d build/installed/lib ]; then  # a link to usr/lib wherever it is installed
    cp -a build/installed/lib/. build/installed/usr/lib/
    rm -r build/installed/lib
  fi
  cmake --preset release -DSPARK_TESTS=ON >/dev/null
  # shellcheck disable=SC2086  # several words
  cmake --build --preset release -j "$2" --target $tests
  # The unit tests on amd64 cover what qemu-user does not emulate: io_uring, openat2(), mounts made by descriptor, a file
  # system's requests for its UUID and its shutdown, groups of a peer, and another process's start time.
  not_emulated='RunnerTest.*:OutsideLinksTest.*:StagedLinksTest.*:ServedCopiesTest.*:GuardTest.*:Confinement.*'
  not_emulated="$not_emulated:LoopMount.*Shut*:LoopMount.AMountReportsTheUuid*:ServerLimitsTest.*Group*"
  not_emulated="$not_emulated:RoomTest.*:DatasetsTest.ALeaseBelongsToTheProcess*"
  # These compare times of a parser with large inputs, and would take half an hour.
  not_emulated="$not_emulated:*/ConfigCost.*"
  if [ "$tests" = all ]; then
    echo "deb-for: not under emulation: $not_emulated"
    export GTEST_FILTER="-$not_emulated"
  fi
  # Twice: under emulation, a missed deadline may mean nothing.
  ctest --test-dir build/release --output-on-failure --no-tests=error --repeat until-pass:2 -j "$2" -R "^($(echo "$chosen" | tr ' ' '|'))\$"
}

start() {  # SYSTEM [ARCHITECTURE [JOBS]]
  if [ "$(id -u)" -ne 0 ]; then echo "deb-for: root is needed for a chroot" >&2; exit 1; fi
  native=$(dpkg --print-architecture)
  arch=${2:-$native}
  suite=$(suite_of "$1")
  source=$(cd "$(dirname "$0")/.." && pwd)
  build=$source/build/$1-$arch
  set_of=package
  if [ "$arch" != "$native" ]; then
    set_of=cross
    register_emulator qemu-aarch64
  fi
  packages=$("$source/tools/setup.sh" list $set_of "$1" | xargs | tr ' ' ,)
  root=$source/build/root-$1-$arch-$(echo "$packages" | sha256sum | cut -c1-16)
  mkdir -p "$build"
  if [ ! -d "$root" ]; then
    rm -rf "$source/build/root-$1-$arch"-*
    make_root "$root" "$suite" "$packages"
  fi
  exec unshare --mount --pid --fork --kill-child --propagation private \
    "$source/tools/deb-for.sh" enter-root "$root" "$source" "$build" "$arch" "${3:-$(nproc)}"
}

case "${1:-}" in
  enter-root) shift; enter_root "$@" ;;
  build-inside) shift; build_inside "$@" ;;
  *) start "$@" ;;
esac
