#!/bin/sh
# What goes before and after the files of `make install`, and `make uninstall`. The packages' own scripts do the same for packages.
# A list of what was installed lies with it: that of the build folder is of whatever was installed from there last, as `make deb`
# does below /usr.
# Usage: tools/installed.sh check|add|remove PREFIX      as root; check: before the files, add: after them
set -eu
export LC_ALL=C

cd "$(dirname "$0")/.."
prefix=${2:-/usr/local}
# As dpkg writes paths.
case "$prefix" in /*) prefix=$(realpath -ms -- "$prefix") ;; esac
built=build/release/install_manifest.txt
manifest=$prefix/share/spark-stage/installed
unit_part=${SPARK_SYSTEMD_UNIT_DIR:-lib/systemd/system}
unit_folder=$prefix/$unit_part
state=/var/lib/spark-stage
settings=/etc/spark-stage
daemon=spark-staged.service
release=spark-stage-release.service

say() {
  echo "spark-stage: $*"
}

refuse() {
  say "$*" >&2
  exit 1
}

has_systemd() {
  [ -d /run/systemd/system ]
}

# Of the packages, one a line. Debian 12 has /lib in the names of some, which are in /usr/lib.
packaged_files() {
  dpkg-query --listfiles spark-stage spark-stage-slurm spark-stage-csi 2>/dev/null | sed 's|^/lib/|/usr/lib/|' || true
}

has_package() {  # PREFIX
  packaged_files | grep -qxF "$1/sbin/spark-staged" && [ -x "$1/sbin/spark-staged" ]
}

# The program of another installation, if systemd starts it as this host's daemon: what is running and mounted is its own. The same
# lines are in debian/postinst, prerm and postrm and in tools/installed.sh.
other_daemon() {  # PROGRAM of this installation
  for folder in /etc/systemd/system /usr/local/lib/systemd/system /usr/lib/systemd/system /lib/systemd/system; do
    [ -e $folder/spark-staged.service ] || continue
    command=$(sed -n 's/^ExecStart=[-@:+!|]*//p' $folder/spark-staged.service | tail -n 1)
    case " $command " in *" $1 "*) return ;; esac
    if [ -x "${command%% *}" ]; then echo "${command%% *}"; fi
    return
  done
}

check() {
  case "$prefix" in /*) ;; *) refuse "PREFIX=$prefix is no absolute path" ;; esac
  if has_package "$prefix"; then
    refuse "the package spark-stage has its files in $prefix - upgrade the package (make deb), or install beside it: make install PREFIX=/usr/local"
  fi
}

# A list on stdin: files first, but those that a package has placed since; then their folders as far as they are ours and empty.
delete() {
  packaged_files >"$manifest.packages"
  grep -vxF -f "$manifest.packages" | while IFS= read -r file; do
    case "$file" in /*) rm -f -- "$file" ;; esac
  done || true
  rm -f "$manifest.packages"
}

delete_folders() {
  for folder in "$prefix/share/doc/spark-stage" "$prefix/share/spark-stage"; do
    find "$folder" -depth -type d -empty -delete 2>/dev/null || true
  done
}

# The list of this installation; files of an earlier one that it has no more are deleted.
note_files() {
  mkdir -p "${manifest%/*}"
  sort -u "$built" >"$manifest.new"
  if [ -e "$manifest" ]; then sort -u "$manifest" | comm -23 - "$manifest.new" | delete; fi
  mv "$manifest.new" "$manifest"
}

known() {  # UNIT: the file that systemd uses
  systemctl show -p FragmentPath --value "$1" 2>/dev/null || true
}

is_known() {  # UNIT: from this prefix
  file=$(known "$1")
  [ -n "$file" ] && [ "$(realpath -m -- "$file")" = "$(realpath -m -- "$unit_folder/$1")" ]
}

is_masked() {  # UNIT
  [ "$(systemctl show -p LoadState --value "$1" 2>/dev/null)" = masked ]
}

# Removes the link that `make install` of another PREFIX made; of the administrator's own, nothing.
forget_other_prefix() {  # UNIT
  link=/etc/systemd/system/$1
  leads_to=$(readlink "$link") || return 0
  other_prefix=${leads_to%"/$unit_part/$1"}
  if [ "$leads_to" = "$unit_folder/$1" ] || [ "$leads_to" = "$other_prefix" ]; then return; fi
  if [ -e "$leads_to" ] && [ ! -e "$other_prefix/share/spark-stage/installed" ]; then return; fi
  rm -f "$link"
  systemctl daemon-reload
}

# systemd looks for units below /usr and /usr/local only, and may know the package's. A link to a unit there would be its own other
# name: `is-enabled` fails.
make_known() {
  systemctl daemon-reload
  for unit in $daemon $release; do
    if is_masked "$unit"; then continue; fi
    forget_other_prefix "$unit"
    if is_known "$unit"; then continue; fi
    case "$(known "$unit")" in
      /etc/*) say "$(known "$unit") stays the unit in use" ;;  # the administrator's own
      *) systemctl --quiet link "$unit_folder/$unit" ;;
    esac
  done
}

add() {
  [ -e $built ] || refuse "$PWD/$built is missing: 'make install' makes it"
  note_files
  has_systemd || return 0
  systemd-sysusers "$prefix/lib/sysusers.d/spark-stage.conf"
  systemd-tmpfiles --create "$prefix/lib/tmpfiles.d/spark-stage.conf"
  make_known
  if has_package /usr; then
    say "the package spark-stage stays installed, and is not used any more: 'sudo make uninstall' gives its daemon back"
  fi
  other=$(other_daemon "$prefix/sbin/spark-staged")
  if is_masked $daemon; then
    say "installed; $daemon is masked, and starts after 'systemctl unmask spark-staged' only"
  elif [ -n "$other" ]; then
    say "installed; the daemon of $other goes on"
  elif systemctl --quiet is-active $daemon; then
    systemctl restart $daemon  # disturbs no mount
    say "installed; the running daemon was restarted and is of this version now"
  elif [ -e $settings/spark-stage.yaml ]; then
    say "installed - next: systemctl enable --now spark-staged"
  else
    say "installed - next: $settings/spark-stage.yaml, then systemctl enable --now spark-staged"
  fi
}

# Another installation's daemon is in use: only the files go, and a link to one of them.
leave_to_other() {
  if has_systemd && [ "$(readlink /etc/systemd/system/$release)" = "$unit_folder/$release" ]; then
    systemctl --quiet disable $release 2>/dev/null || true
  fi
  delete <"$manifest"
  if has_systemd; then systemctl daemon-reload; fi
}

# The daemon of the package goes on where this one ends: mounts, copies and mount points stay as they are.
hand_over() {
  state_of_unit=""
  if has_systemd; then
    state_of_unit=$(systemctl is-enabled $daemon 2>/dev/null) || true
    systemctl --quiet disable $daemon $release 2>/dev/null || true  # these links lead into the prefix
  fi
  delete <"$manifest"
  if has_systemd; then
    systemctl daemon-reload
    if [ "$state_of_unit" = enabled ]; then systemctl --quiet enable $daemon; fi
    systemctl try-restart $daemon
  fi
}

end_daemon() {
  if has_systemd; then
    systemctl --quiet disable --now $daemon $release 2>/dev/null || true
  fi
  # Of a drive that does not answer, it may wait for ever.
  timeout -k 5 60 "$prefix/sbin/spark-staged" release --copies || say "the staged copies are still mounted read-only: umount the cache's folder 'data'" >&2
  sh debian/postrm mount-points
  delete <"$manifest"
  if has_systemd; then systemctl daemon-reload; fi
}

remove() {
  [ "$(id -u)" -eq 0 ] || refuse "root is needed: sudo make uninstall"
  [ -e "$manifest" ] ||
    refuse "$manifest is missing: nothing says what 'make install' placed - run 'make install' again, then 'make uninstall', both with its PREFIX"
  other=$(other_daemon "$prefix/sbin/spark-staged")
  if [ -n "$other" ]; then leave_to_other; elif has_package /usr; then hand_over; else end_daemon; fi
  rm -f "$manifest"
  delete_folders
  say "removed"
  if [ -n "$other" ]; then
    say "$other stays the daemon of this host"
    return
  fi
  if has_package /usr; then
    say "the package spark-stage is in use now, with the configuration and all data"
    return
  fi
  [ ! -e $settings ] || say "kept: $settings (configuration, keys)"
  [ ! -e $state ] || say "kept: $state (staged data, pinned identities)"
  unsent=$(find $state/stage-outs -maxdepth 1 -name '*.json' 2>/dev/null | wc -l)
  [ "$unsent" -eq 0 ] || say "$unsent stage-outs have not ended: what they send is complete on this host alone, until a daemon runs here again"
  say "volumes stay mounted and connected until you unmount and disconnect them, or the host is shut down"
}

case "${1:-}" in
  check) check ;;
  add) add ;;
  remove) remove ;;
  *) echo "usage: tools/installed.sh check|add|remove PREFIX" >&2; exit 2 ;;
esac
