#!/bin/sh
# Builds and tests on a computer without root and without a package source, as far as its own libraries go: what it lacks comes from
# Debian 12's archive, and is used from a folder. Made for Ubuntu 24.04 (DGX OS 7), so that each release can be tried there.
# Usage: tools/borrowed.sh pack FOLDER                     on Debian 12: FOLDER/root, and FOLDER/packages with names and versions
#        tools/borrowed.sh build FOLDER [JOBS]             there: configures and builds, in build/borrowed
#        tools/borrowed.sh test FOLDER [JOBS [SECONDS]]    there: runs the unit tests, until the deadline
# Their output is the record of a trial: whose libraries are used, what was not built, and what was skipped and why.
set -eu

# Headers, the libraries behind them, and programs that tests call. Of what the other computer has as well, its own is used.
packages="libnvme-dev libnvme1 libmount-dev libmount1 libblkid-dev libblkid1 libext2fs-dev libext2fs2 comerr-dev libcom-err2 libsystemd-dev
  libsystemd0 liburing-dev liburing2 libxxhash-dev libxxhash0 libsqlite3-dev libsqlite3-0 prometheus-cpp-dev libprometheus-cpp-core1.0
  libexpected-dev libjson-c-dev libjson-c5 libkeyutils1 libdbus-1-3 libselinux1-dev libsepol-dev libpcre2-dev
  rsync xfsprogs libpopt0 libinih1 liburcu8 libacl1"
# Of Debian 13, whose Boost is Ubuntu's.
newer="libboost-json1.83-dev libboost-json1.83.0 libboost-container1.83-dev libboost-container1.83.0"

# Of Debian 13's archive, without a change to this computer's own sources.
download_newer() {  # FOLDER
  mkdir -p "$1/apt/lists/partial" "$1/apt/cache/archives/partial"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian trixie main" >"$1/apt/sources.list"
  set -- "$1" -q -o Dir::Etc::SourceList="$1/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$1/apt/lists" \
    -o Dir::State::status=/dev/null -o Dir::Cache="$1/apt/cache" -o APT::Sandbox::User=root
  folder=$1
  shift
  apt-get "$@" update
  # shellcheck disable=SC2086  # several words
  (cd "$folder/download" && apt-get "$@" download $newer)
  rm -r "$folder/apt"
}

pack() {  # FOLDER
  rm -rf "$1"
  mkdir -p "$1/download" "$1/root"
  # shellcheck disable=SC2086  # several words
  (cd "$1/download" && apt-get -q download $packages)
  download_newer "$(realpath "$1")"
  for file in "$1"/download/*.deb; do
    dpkg-deb -x "$file" "$1/root"
    dpkg-deb -f "$file" Package Version | xargs | sed 's/Package: \(.*\) Version: /\1 /' >>"$1/packages"
  done
  rm -r "$1/download" "$1/root/usr/share/doc" "$1/root/usr/share/man"
  find "$1/root" -name '*.a' -delete
}

# Each soname that this computer has is its own; names without a version, for the linker, lead to the one in use.
choose_libraries() {  # ROOT
  find "$1" -name '*.so.*' ! -type d | while IFS= read -r file; do
    own=$(ldconfig -p | awk -v name="$(basename "$file")" '$1 == name { print $NF; exit }')
    if [ -n "$own" ]; then
      echo "borrowed: $own is this computer's own"
      ln -sf "$own" "$file"
    fi
  done
}

use_folder() {  # ROOT
  find "$1" -name '*.pc' -exec sed -i "s|^\(prefix=\).*|\1$1/usr|; s|=/usr/lib|=$1/usr/lib|; s|=/usr/include|=$1/usr/include|; s|=/lib|=$1/lib|" {} +
  # Development packages name libraries of /lib by absolute links.
  find "$1" -name '*.so' -type l -lname '/*' | while IFS= read -r link; do ln -sf "$1$(readlink "$link")" "$link"; done
}

# What is built and run finds its libraries there.
use() {  # FOLDER
  root=$(realpath "$1")/root
  triplet=$(g++ -dumpmachine)
  export PATH="$PATH:$root/usr/bin:$root/sbin:$root/usr/sbin"
  export PKG_CONFIG_PATH="$root/usr/lib/$triplet/pkgconfig:$root/usr/share/pkgconfig" CMAKE_PREFIX_PATH="$root/usr"
  export LD_LIBRARY_PATH="$root/usr/lib/$triplet:$root/lib/$triplet"
  echo "borrowed: $(. /etc/os-release && echo "$PRETTY_NAME"), $(uname -m), Linux $(uname -r), $(nproc) cores, $(g++ --version | head -n 1)," \
    "commit $(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
}

build() {  # FOLDER JOBS
  use "$1"
  use_folder "$root"
  # One file of Boost's is shared by its parts, which lie in two places here.
  for file in /usr/lib/"$triplet"/cmake/BoostDetectToolset-*.cmake; do ln -sf "$file" "$root/usr/lib/$triplet/cmake/"; done
  choose_libraries "$root"
  echo "borrowed: from Debian: $(xargs <"$1/packages")"
  cmake -S . -B build/borrowed -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DSPARK_WHOLE=ON -DSPARK_TESTS=ON -DSPARK_SLURM=OFF -DSPARK_CSI=OFF \
    -DCMAKE_EXE_LINKER_FLAGS="-Wl,-rpath-link,$root/usr/lib/$triplet -Wl,-rpath-link,$root/lib/$triplet"
  cmake --build build/borrowed -j "$2"
  build/borrowed/cli/spark-stage --version
  ldd build/borrowed/daemon/spark-staged | awk '{ print "borrowed: " $1 " " $3 }'
  echo "borrowed: built; not built here: the Slurm plugin, the Kubernetes driver, a package"
}

# fio and gnuplot have more libraries than are worth carrying: where they are missing, the tests that call them fail, and are named.
run_tests() {  # FOLDER JOBS SECONDS
  use "$1"
  [ "$(id -u)" -eq 0 ] || echo "borrowed: not as root: what only root can try is skipped"
  status=0
  ctest --test-dir build/borrowed --output-on-failure --no-tests=error -R '^Configs' || status=1
  python3 tools/shards.py build/borrowed "$2" "$3" || status=1
  return $status
}

cd "$(dirname "$0")/.."
case "${1:-}" in
  pack) pack "$2" ;;
  build) build "$2" "${3:-$(nproc)}" ;;
  test) run_tests "$2" "${3:-$(nproc)}" "${4:-3600}" ;;
  *) echo "usage: tools/borrowed.sh pack FOLDER | build FOLDER [JOBS] | test FOLDER [JOBS [SECONDS]]" >&2; exit 2 ;;
esac
