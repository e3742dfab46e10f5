#!/bin/sh
# Builds the Debian package of an earlier commit with that commit's own tools: build/deb-COMMIT/*.deb
# Built once; source and build are in build/source-COMMIT.
# Usage: tools/deb-of.sh COMMIT [JOBS]
set -eu

cd "$(dirname "$0")/.."
commit=$1 jobs=${2:-$(nproc)}
source=$PWD/build/source-$commit out=$PWD/build/deb-$commit

if ! git cat-file -e "$commit^{commit}" 2>/dev/null; then
  echo "deb-of: this clone's history does not reach back to $commit: git fetch --unshallow" >&2
  exit 1
fi
if [ -n "$(find "$out" -name '*.deb' 2>/dev/null)" ]; then
  echo "deb-of: $out is there already"
  exit 0
fi
mkdir -p "$source" "$out"
git archive "$commit" | tar -x -C "$source"
"$source/tools/deb.sh" "$jobs"
cp "$source"/build/deb/*.deb "$out"
