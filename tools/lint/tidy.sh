#!/bin/sh
# clang-tidy (.clang-tidy) over every source file that build/dev compiles. Usage: tools/lint/tidy.sh [JOBS]
set -eu
cd "$(dirname "$0")/../.."
exec run-clang-tidy-14 -quiet -p build/dev -j "${1:-$(nproc)}" "^$PWD/(base|nvmetcp|staging|bench|daemon|cli)/.*\.cpp$"
