#!/bin/sh
# Builds all fuzzers and runs each for SECONDS (default 20).
# New inputs are kept in build/fuzz/corpus; a failing input is build/fuzz/NAME-….
# Usage: tools/fuzz.sh [SECONDS] [NAME…]; SPARK_FUZZ_PRESET=asan takes the slower programs of that build, beside its tests
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-20}
if [ $# -gt 0 ]; then shift; fi
preset=${SPARK_FUZZ_PRESET:-fuzz}
programs=build/$preset/tests/fuzz
cmake --preset "$preset"
cmake --build --preset "$preset" --target fuzzers
if [ $# -gt 0 ]; then names=$*; else names=$(find "$programs" -maxdepth 1 -name '*_fuzz' -printf '%f\n' | sort); fi

run_one() {  # NAME
  name=$1
  mkdir -p "build/fuzz/corpus/$name" "tests/fuzz/corpus/$name"
  set -- "build/fuzz/corpus/$name" "tests/fuzz/corpus/$name"
  if [ -f "tests/fuzz/$name.dict" ]; then set -- "-dict=tests/fuzz/$name.dict" "$@"; fi
  "$programs/$name" "-max_total_time=$seconds" -timeout=10 -rss_limit_mb=2048 -verbosity=0 \
    -print_final_stats=1 "-artifact_prefix=build/fuzz/$name-" "$@" > "build/fuzz/$name.log" 2>&1
}

failed=0
for name in $names; do
  if run_one "$name"; then
    echo "fuzz: $name: $(grep -a number_of_executed_units "build/fuzz/$name.log" | tr -dc 0-9) inputs, none failed"
  else
    failed=$((failed + 1))
    tail -n 60 "build/fuzz/$name.log"
    echo "fuzz: $name FAILED, see build/fuzz/$name.log and the input beside it" >&2
  fi
done
exit "$((failed > 0))"
