#!/bin/sh
# Makes a release of this checkout in build/release-VERSION: the packages, NOTES.md and SHA256SUMS. Builds the packages for
# every system that can be built here, checks them with lintian, and installs and removes each set on a fresh system. Needs
# root. The version is in debian/changelog, the notes are the section of that version in CHANGELOG.md.
# Usage: tools/release.sh [JOBS [SYSTEM-ARCHITECTURE…]]    as in debian-13-arm64; default: all four, or this system alone
#                                                          if it is another one or `tools/setup.sh others` has not run
#        tools/release.sh check                            only whether this checkout can be released
set -eu

refuse() {
  echo "release: $1" >&2
  exit 1
}

notes_of() {  # VERSION
  awk -v heading="## $1" '/^## / { inside = ($0 == heading || index($0, heading " ") == 1); next } inside' CHANGELOG.md
}

names() {  # PATTERN FILE
  grep -q "$1" "$2" || refuse "$2 names another version: it has no line with $1"
}

check_checkout() {  # VERSION
  [ -n "$1" ] || refuse "the first line of debian/changelog has no version of the form 1.2.3"
  [ -z "$(git status --porcelain)" ] || refuse "the checkout has changes that are not committed: git status"
  [ -n "$(notes_of "$1" | tr -d '[:space:]')" ] || refuse "CHANGELOG.md has no notes for $1: write the section '## $1'"
  [ -z "$(notes_of Unreleased | tr -d '[:space:]')" ] ||
    refuse "CHANGELOG.md has a section 'Unreleased': move its lines to '## $1'"
  names "newTag: $1\$" configs/kubernetes/kustomization.yaml
  names "spark-stage:$1\$" docs/kubernetes.md
  names "^  version: $1\$" docs/openapi.yaml
  if released=$(git rev-parse --quiet --verify "v$1^{commit}") && [ "$released" != "$(git rev-parse HEAD)" ]; then
    refuse "$1 was released already, as commit $released: raise the version in debian/changelog"
  fi
}

this_system() {
  echo "$(. /etc/os-release && echo "$ID-${VERSION_ID:-}")-$(dpkg --print-architecture)"
}

buildable() {
  case "$(this_system)" in
    debian-12-amd64)
      if command -v qemu-aarch64-static >/dev/null; then
        echo debian-12-amd64 debian-12-arm64 debian-13-amd64 debian-13-arm64
        return
      fi ;;
  esac
  this_system
}

suite_of() {  # SYSTEM-ARCHITECTURE
  case "$1" in
    debian-12-*) echo bookworm ;;
    debian-13-*) echo trixie ;;
    *) . /etc/os-release && echo "$VERSION_CODENAME" ;;
  esac
}

# The folder with the packages of a system.
folder_of() {  # SYSTEM-ARCHITECTURE
  if [ "$1" = "$(this_system)" ]; then echo build/deb; else echo "build/$1/deb"; fi
}

build() {  # SYSTEM-ARCHITECTURE JOBS
  if [ "$1" = "$(this_system)" ]; then tools/deb.sh "$2"; else tools/deb-for.sh "${1%-*}" "${1##*-}" "$2"; fi
}

# apt finds all dependencies in the release's own archive; nothing of ours is left after the purge.
install_and_remove() {  # SYSTEM-ARCHITECTURE VERSION
  echo "release: installing the packages of $1 on a fresh system"
  includes=""
  for package in "$(folder_of "$1")"/*.deb; do includes="$includes --include=$PWD/$package"; done
  # shellcheck disable=SC2016,SC2086  # $1 is mmdebstrap's; several words
  unshare --mount --propagation private mmdebstrap --quiet --variant=apt --architectures="${1##*-}" --format=null \
    --aptopt='APT::Install-Recommends "false"' --hook-dir=/usr/share/mmdebstrap/hooks/file-mirror-automount $includes \
    --customize-hook="chroot \"\$1\" sh -euc 'for program in spark-stage spark-staged spark-stage-csi; do
        case \$(\$program --version) in *\" $2\") ;; *) echo \"release: \$program is not version $2\" >&2; exit 1 ;; esac
      done
      spark-stage config check /usr/share/doc/spark-stage/configs/spark-stage.yaml
      dpkg --purge spark-stage-slurm spark-stage-csi spark-stage
      ! dpkg-query -W \"spark-stage*\" 2>/dev/null | grep .'" \
    "$(suite_of "$1")" /dev/null
}

cd "$(dirname "$0")/.."
version=$(sed -nE '1s/^spark-stage \(([0-9]+\.[0-9]+\.[0-9]+)\).*/\1/p' debian/changelog)
check_checkout "$version"
if [ "${1:-}" = check ]; then exit; fi
[ "$(id -u)" -eq 0 ] || refuse "root is needed, to install the packages on a fresh system"

jobs=${1:-$(nproc)}
[ $# -eq 0 ] || shift
# shellcheck disable=SC2046  # several words
[ $# -gt 0 ] || set -- $(buildable)
out=build/release-$version
rm -rf "$out.new"  # an earlier one stays until this one is complete
mkdir -p "$out.new"
for system in "$@"; do
  build "$system" "$jobs"
  install_and_remove "$system" "$version"
  cp "$(folder_of "$system")"/*.deb "$out.new"
done
check_checkout "$version"  # a build may not change the checkout
{ echo "# spark-stage $version"; notes_of "$version"; } >"$out.new/NOTES.md"
(cd "$out.new" && sha256sum -- * >../SHA256SUMS.new && mv ../SHA256SUMS.new SHA256SUMS && sha256sum --quiet --check SHA256SUMS)
rm -rf "$out"
mv "$out.new" "$out"
echo "release: $version for $* is in $out; tag it with: git tag v$version"
