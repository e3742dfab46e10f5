#!/bin/sh
# Makes a container image of built packages and of Debian's packages that they need, and nothing else:
# build/image/spark-stage-ARCHITECTURE.tar, for `podman load`, `ctr images import` or `skopeo copy oci-archive:…`. Needs root,
# mmdebstrap and buildah; no registry.
# Usage: tools/image.sh SYSTEM ARCHITECTURE FOLDER     SYSTEM: debian-12 or debian-13; FOLDER: has the packages for it
set -eu

if [ $# -ne 3 ]; then sed -n '5p' "$0" | cut -c3- >&2; exit 2; fi
if [ "$(id -u)" -ne 0 ]; then echo "image: root is needed, as the files of an image are root's" >&2; exit 1; fi
case "$1" in
  debian-12) suite=bookworm ;;
  debian-13) suite=trixie ;;
  *) echo "image: made for debian-12 and debian-13, not '$1'" >&2; exit 2 ;;
esac
arch=$2
packages=$(cd "$3" && pwd)
for name in spark-stage spark-stage-csi; do
  if [ "$(find "$packages" -name "${name}_*_$arch.deb" | wc -l)" -ne 1 ]; then
    echo "image: $packages has not one package $name for $arch: make deb, or tools/deb-for.sh $1 $arch" >&2
    exit 1
  fi
done
cd "$(dirname "$0")/.."
out=$PWD/build/image
root=$out/root-$arch
rm -rf "$root"
mkdir -p "$root"

# Unpacked but not configured: no maintainer script runs, so an image for another architecture needs no emulator. Mounts
# need kmod (if the driver is a module), and NFS its mount.nfs.
# The mount that shows the packages is private to this namespace; the folders created for it are empty afterwards.
unshare --mount --propagation private mmdebstrap --quiet --variant=extract --architectures="$arch" \
  --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --hook-dir=/usr/share/mmdebstrap/hooks/file-mirror-automount \
  --include="$(find "$packages" -name "spark-stage_*_$arch.deb")" \
  --include="$(find "$packages" -name "spark-stage-csi_*_$arch.deb")" \
  --include=systemd-standalone-sysusers,e2fsprogs,xfsprogs,nfs-common,netbase \
  "$suite" "$root"
(cd "$root" && find "${packages#/}" -type f -empty -delete && rmdir -p --ignore-fail-on-non-empty "${packages#/}")
# What stays: our programs, those that they or the repair of a volume need, the libraries of all these, and the licences.
kept=$(mktemp)
trap 'rm -f "$kept"' EXIT
for name in spark-staged spark-stage spark-stage-csi kmod modprobe lsmod mount.nfs mount.nfs4 umount.nfs umount.nfs4 \
  mke2fs mkfs.ext4 e2fsck fsck.ext4 tune2fs dumpe2fs mkfs.xfs xfs_repair xfs_db; do
  find "$root/usr/bin" "$root/usr/sbin" -name "$name"
done >"$kept"
new=$(cat "$kept" && find "$root/usr/lib" -name "libnss_*.so.*")  # glibc loads these by name
while [ -n "$new" ]; do
  # shellcheck disable=SC2086  # paths of Debian, which have no spaces
  needed=$(readelf -d $new 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p' | sort -u)
  echo "$new" >>"$kept"
  new=$(for name in $needed; do find "$root/usr/lib" -name "$name" -print -exec realpath {} +; done | sort -u | grep -vxFf "$kept") || true
done
find "$root/usr/bin" "$root/usr/sbin" "$root/usr/lib" "$root/usr/libexec" ! -type d | grep -vxFf "$kept" | xargs -d '\n' rm
find "$root/usr/share/doc" -type f ! -name copyright -delete
find "$root/usr/share" -mindepth 1 -maxdepth 1 ! -name doc -exec rm -rf {} +
rm -rf "$root/usr/include" "$root/usr/games" "$root/usr/src"
find "$root/usr" -mindepth 2 -type d -empty -delete
rm -rf "$root/var/cache" "$root/var/lib/apt" "$root/var/lib/dpkg" "$root/var/log"
mkdir -p "$root/proc" "$root/sys" "$root/dev" "$root/tmp" "$root/run" "$root/etc/nvme" "$root/etc/spark-stage"
# An image must not contain a host's identity: all hosts would be the same one to a target.
for name in hostnqn hostid; do
  if [ -e "$root/etc/nvme/$name" ]; then echo "image: the packages bring /etc/nvme/$name" >&2; exit 1; fi
done

version=$(dpkg-deb -f "$(find "$packages" -name "spark-stage_*_$arch.deb")" Version | sed 's/[~-].*//')
build() { buildah --root "$out/storage" --runroot "$out/run" --storage-driver vfs "$@"; }
container=$(build from --arch "$arch" scratch)
build add --quiet "$container" "$root" / > /dev/null
build config --arch "$arch" --env PATH=/usr/sbin:/usr/bin:/sbin:/bin --cmd '["spark-staged", "--make-identity", "--log", "json"]' \
  --label org.opencontainers.image.title=spark-stage --label "org.opencontainers.image.version=$version" "$container"
rm -f "$out/spark-stage-$arch.tar"
build commit --quiet "$container" "oci-archive:$out/spark-stage-$arch.tar:spark-stage:$version" > /dev/null
build rm "$container" > /dev/null
echo "image: build/image/spark-stage-$arch.tar," \
  "$(du -sm "$root" | cut -f1) MB unpacked, $(du -m "$out/spark-stage-$arch.tar" | cut -f1) MB as an archive"
