#!/bin/sh
# Builds the Debian packages for this system's release and architecture, and checks them with lintian: build/deb/*.deb
# Packages the output of `make build`, which the virtual machines test.
# Usage: tools/deb.sh [JOBS [ARCHITECTURE]]      for the libraries of another architecture see tools/deb-for.sh
set -eu

cd "$(dirname "$0")/.."
jobs=${1:-$(nproc)}
# Packages for different releases need different libraries, so the version contains the release.
release=$(. /etc/os-release && echo "$ID${VERSION_ID:-}")
out=$PWD/build/deb
rm -rf "$out"
mkdir -p "$out"

eval "$(dpkg-architecture --host-arch "${2:-$(dpkg --print-architecture)}" --print-set)"
dpkg-checkbuilddeps -a "$DEB_HOST_ARCH"
echo "deb: building for $release, $DEB_HOST_ARCH"
export SPARK_DEB_VERSION_SUFFIX="~$release" SPARK_DEB_FOLDER="$out" CMAKE_BUILD_PARALLEL_LEVEL="$jobs"
export DEB_BUILD_OPTIONS="parallel=$jobs noautodbgsym"
# Removes debhelper's notes next to debian/rules, so that the next package is built from scratch.
debian/rules clean
trap 'debian/rules clean > /dev/null' EXIT
debian/rules build  # not under fakeroot, which gives files other times, so that everything would be compiled again
fakeroot debian/rules binary
echo "deb: lintian"
lintian --fail-on error,warning --profile debian "$out"/*.deb
for package in "$out"/*.deb; do echo "deb: ${package#"$PWD"/}"; done
