#!/bin/sh
# clang-tidy (.clang-tidy) over our source files, each on its own: without precompiled headers, so that a
# forgotten #include is found. Usage: tools/lint/tidy.sh [JOBS [FILE…]]
set -eu
cd "$(dirname "$0")/../.."
mkdir -p build
jobs=${1:-$(nproc)}
if [ $# -gt 0 ]; then shift; fi
if [ $# -eq 0 ]; then
  # shellcheck disable=SC2046  # our file names have no spaces
  set -- $(find base nvmetcp staging bench daemon host doctor cli -name '*.cpp' | sort)
fi
CXX=g++ cmake -S . -B build/tidy -G Ninja -DCMAKE_BUILD_TYPE=Debug -DSPARK_TESTS=OFF -DSPARK_PCH=OFF > build/tidy.log ||
  { cat build/tidy.log; exit 1; }
# Its count of the warnings that it suppressed in other people's headers is noise.
found=$(printf '%s\n' "$@" | xargs -P "$jobs" -n 1 clang-tidy-14 --quiet -p build/tidy 2>&1) || status=$?
printf '%s\n' "$found" | grep -v 'warnings generated\.$' || true
exit "${status:-0}"
