#!/bin/sh
# clang-tidy (.clang-tidy) over our source files, or over those that are named, each on its own. All of them are looked at
# 24 at a time, as SPARK_WHOLE compiles them: most of clang-tidy's time goes into the headers that they share.
# Usage: tools/lint/tidy.sh [JOBS [FILE…]]
set -eu
cd "$(dirname "$0")/../.."
mkdir -p build
jobs=${1:-$(nproc)}
if [ $# -gt 0 ]; then shift; fi
whole=OFF
if [ $# -eq 0 ]; then whole=ON; fi
CXX=g++ cmake -S . -B build/tidy -G Ninja -DCMAKE_BUILD_TYPE=Debug -DSPARK_TESTS=OFF -DSPARK_WHOLE=$whole -DSPARK_PCH=OFF \
  > build/tidy.log || { cat build/tidy.log; exit 1; }
# Headers that protoc writes.
if grep -q /csi/server/ build/tidy/compile_commands.json; then
  cmake --build build/tidy --target spark_csi_generated > build/tidy.log || { cat build/tidy.log; exit 1; }
fi
if [ $# -eq 0 ]; then
  # shellcheck disable=SC2046  # our file names have no spaces
  set -- $(sed -n 's/^ *"file": "\(.*\)".*/\1/p' build/tidy/compile_commands.json | sort -u)
fi
# Its count of the warnings that it suppressed in other people's headers is noise.
found=$(printf '%s\n' "$@" |
  xargs -P "$jobs" -n 1 clang-tidy-14 --quiet --extra-arg=-Wno-unknown-warning-option -p build/tidy 2>&1) || status=$?
printf '%s\n' "$found" | grep -v 'warnings generated\.$' || true
exit "${status:-0}"
