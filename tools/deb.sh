#!/bin/sh
# Builds the Debian package of this system's release and architecture, and looks at it with lintian: build/deb/*.deb
# Usage: tools/deb.sh [JOBS]
set -eu

cd "$(dirname "$0")/.."
jobs=${1:-$(nproc)}
# Packages of different releases need different libraries: the version says which it was built for.
release=$(. /etc/os-release && echo "$ID${VERSION_ID:-}")
out=$PWD/build/deb
tree=$out/spark-stage
rm -rf "$tree"
mkdir -p "$tree"
# What is built is what is here: files that git knows, as they are now, and new ones that it does not ignore.
git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf - | tar -xf - -C "$tree"
sed -i "1s/(\([^)]*\))/(\1~$release)/" "$tree/debian/changelog"

echo "deb: building for $release, $(dpkg --print-architecture)"
(cd "$tree" && DEB_BUILD_OPTIONS="parallel=$jobs noautodbgsym" dpkg-buildpackage -us -uc -b)
package=$(find "$out" -maxdepth 1 -name '*.deb' -newer "$tree/debian/changelog" | head -n 1)

echo "deb: lintian"
lintian --fail-on error,warning --profile debian "$package"
echo "deb: ${package#"$PWD"/}"
