#!/bin/sh
# Installs what building and testing spark-stage needs on Debian 12 or 13. Safe to run twice.
# Usage: tools/setup.sh [build|test]   build: compile and unit tests; test (default): also lint, fuzzing and virtual machines.
set -eu
what=${1:-test}
. /etc/os-release
case "$ID-${VERSION_ID:-}" in
  debian-12) boost=1.81 ;;
  debian-13) boost=1.83 ;;
  *) echo "setup: tested on Debian 12 and 13, this is $PRETTY_NAME - install the packages listed in tools/setup.sh by hand" >&2; exit 2 ;;
esac

build="ca-certificates cmake g++ git make ninja-build pkgconf
  libnvme-dev libmount-dev libblkid-dev libsystemd-dev libexpected-dev libyaml-cpp-dev libspdlog-dev
  liburing-dev libxxhash-dev libsqlite3-dev libcli11-dev libgtest-dev libgmock-dev
  libboost$boost-dev libboost-json$boost-dev fio rsync e2fsprogs xfsprogs util-linux python3 strace attr acl"
test="clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev
  qemu-system-x86 qemu-utils mmdebstrap debian-archive-keyring uidmap python3-pytest openssh-client
  dosfstools kmod zstd tmux shellcheck"

case "$what" in
  build) packages=$build ;;
  test)
    # Debian 13 is only built on and unit-tested; lint and machines run from Debian 12.
    packages="$build $test" ;;
  *) echo "setup: unknown set '$what' - use build or test" >&2; exit 2 ;;
esac

missing=""
for p in $packages; do
  dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null | grep -qx installed || missing="$missing $p"
done
if [ -z "$missing" ]; then echo "setup: everything is installed"; exit 0; fi
if [ "$(id -u)" -ne 0 ]; then echo "setup: root is needed to install:$missing" >&2; exit 1; fi
echo "setup: installing$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
# Debian 12's default Boost 1.74 conflicts with 1.81; apt swaps them in one go.
# shellcheck disable=SC2086
apt-get install -y -q --no-install-recommends $missing
echo "setup: done"
