#!/bin/sh
# What follows the files of `make install`, and `make uninstall`. The packages' own scripts do the same for packages.
# Usage: tools/installed.sh add|remove      as root; remove deletes what build/release/install_manifest.txt lists
set -eu

cd "$(dirname "$0")/.."
manifest=build/release/install_manifest.txt
state=/var/lib/spark-stage
settings=/etc/spark-stage
units="spark-staged.service spark-stage-release.service"

say() {
  echo "spark-stage: $*"
}

has_systemd() {
  [ -d /run/systemd/system ]
}

add() {
  has_systemd || return 0
  systemd-sysusers spark-stage.conf
  systemd-tmpfiles --create spark-stage.conf
  systemctl daemon-reload
  if systemctl --quiet is-active spark-staged.service; then
    systemctl restart spark-staged.service  # disturbs no mount
    say "installed; the running daemon was restarted and is of this version now"
  elif [ -e $settings/spark-stage.yaml ]; then
    say "installed - next: systemctl enable --now spark-staged"
  else
    say "installed - next: $settings/spark-stage.yaml, then systemctl enable --now spark-staged"
  fi
}

# Files first, then their folders as far as they are ours and empty.
delete_files() {
  while IFS= read -r file; do rm -f -- "$file"; done <$manifest
  sed -n 's|\(/.*/spark-stage\)/.*|\1|p' $manifest | sort -ru | while IFS= read -r folder; do
    case "$folder" in */share/doc/spark-stage) find "$folder" -depth -type d -empty -delete 2>/dev/null || true ;; esac
  done
  rm -f $manifest
}

remove() {
  [ "$(id -u)" -eq 0 ] || { say "root is needed: sudo make uninstall" >&2; exit 1; }
  [ -e $manifest ] || { say "$PWD/$manifest is missing: nothing says what 'make install' placed - run 'make install' again, then 'make uninstall'" >&2; exit 1; }
  if has_systemd; then
    # shellcheck disable=SC2086  # several words
    systemctl --quiet disable --now $units 2>/dev/null || true
  fi
  program=$(grep '/spark-staged$' $manifest | head -n 1)
  "$program" release --copies || say "the staged copies are still mounted read-only: umount $state/cache/data" >&2
  sh debian/postrm mount-points
  delete_files
  if has_systemd; then systemctl daemon-reload; fi
  say "removed"
  [ ! -e $settings ] || say "kept: $settings (configuration, keys)"
  [ ! -e $state ] || say "kept: $state (staged data, pinned identities)"
  say "volumes stay mounted and connected until you unmount and disconnect them, or the host is shut down"
}

case "${1:-}" in
  add) add ;;
  remove) remove ;;
  *) echo "usage: tools/installed.sh add|remove" >&2; exit 2 ;;
esac
