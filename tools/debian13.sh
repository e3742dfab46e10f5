#!/bin/sh
# Builds spark-stage's package in a Debian 13 root (g++ 14, libnvme 1.13), and runs the unit tests of what uses libraries
# that differ there. Needs root and apt.
# The root is made once per package list and kept in build/debian13, with the build folder beside it. The package is
# build/debian13/build/deb/*.deb; what it places, for machines that run Debian 13, is in build/debian13/build/installed.
# Usage: tools/debian13.sh [JOBS]
set -eu

make_root() {  # ROOT PACKAGES,…
  echo "debian13: making the root file system (once)"
  rm -rf "$1".new
  mmdebstrap --variant=apt --include="$2" --aptopt='APT::Install-Recommends "false"' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --skip=output/dev --quiet trixie "$1.new" http://deb.debian.org/debian
  mkdir -p "$1.new/src"
  mv "$1.new" "$1"
}

# Runs in a mount namespace of its own: what is mounted here is gone with the last process in it.
enter_root() {  # ROOT SOURCE BUILD JOBS
  rsync -a --delete --exclude=/build --exclude=/.git "$2/" "$1/src/"  # a package's build writes beside its source
  mkdir -p "$1/src/build"
  mount --bind "$1" "$1"  # a root that is a mount, as on a real machine
  mount --bind "$3" "$1/src/build"
  mount -t proc proc "$1/proc"
  mount --rbind /dev "$1/dev"
  mount --rbind /sys "$1/sys"
  mount -t tmpfs tmpfs "$1/tmp"
  exec chroot "$1" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
    /src/tools/debian13.sh build-inside "$4"
}

build_inside() {  # JOBS
  cd /src
  tests="spark_config_tests spark_mounts_tests spark_nvmetcp_tests"
  echo "debian13: $(. /etc/os-release && echo "$PRETTY_NAME"), $(g++ --version | head -n 1)," \
    "libnvme $(dpkg-query -W -f '${Version}' libnvme-dev)"
  tools/deb.sh "$1"
  rm -rf build/installed
  dpkg-deb -x build/deb/*.deb build/installed
  cmake --preset release -DSPARK_TESTS=ON >/dev/null
  # shellcheck disable=SC2086  # several words
  cmake --build --preset release -j "$1" --target $tests
  ctest --test-dir build/release --output-on-failure --no-tests=error -j "$1" -R "^($(echo "$tests" | tr ' ' '|'))\$"
}

start() {  # JOBS
  if [ "$(id -u)" -ne 0 ]; then echo "debian13: root is needed for a chroot" >&2; exit 1; fi
  source=$(cd "$(dirname "$0")/.." && pwd)
  cache=$source/build/debian13
  packages=$("$source/tools/setup.sh" list package debian-13 | xargs | tr ' ' ,)
  root=$cache/root-$(echo "$packages $(dpkg --print-architecture)" | sha256sum | cut -c1-16)
  mkdir -p "$cache/build"
  if [ ! -d "$root" ]; then
    rm -rf "$cache"/root-*
    make_root "$root" "$packages"
  fi
  exec unshare --mount --pid --fork --kill-child --propagation private \
    "$source/tools/debian13.sh" enter-root "$root" "$source" "$cache/build" "$1"
}

case "${1:-}" in
  enter-root) shift; enter_root "$@" ;;
  build-inside) shift; build_inside "$@" ;;
  *) start "${1:-$(nproc)}" ;;
esac
