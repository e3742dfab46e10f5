// The configuration that replaces a manual setup.
#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/file.hpp"
#include "migration/survey/survey.hpp"

namespace spark::host {

// One thing of the manual setup, and what becomes of it. The comments and the closing steps of the file are
// made from these alone, so that nothing is unmounted or removed for an omitted entry.
struct Item {
  std::string what = {};    // "volume data"
  std::string where = {};   // "/mnt/data", "10.0.0.5:4420"
  std::string origin = {};  // "line 12 of /etc/fstab"
  std::string reason = {};  // why it was left out; empty: it was taken over
  std::string subsystem = {};
  // What gives way to it; empty: nothing.
  std::string fstab_line = {};  // as it stands in the file: its number may change until the steps are taken
  std::vector<std::string> other_lines = {};  // of the same mount point with `noauto`: they stay
  std::string mounted = {},
              automount = {};  // the path of a file system that is mounted now; a unit of systemd
  std::vector<UnitFile> units = {};
  bool becomes_read_only = false;  // it was mounted read-write
  bool needs_volume = false;  // it stays, and something of a volume that was taken over is missing for it
  // Of what keeps a volume from being unmounted now: the command, and what it takes. Empty: it is none of
  // that.
  std::string ended_by = {}, ended = {};
  bool is_taken() const { return reason.empty(); }
};

struct Imported {
  std::string yaml;  // always parses; settings that could not be imported are comments in it
  std::vector<Item> items;
  unsigned targets = 0, volumes = 0;
  unsigned left_out = 0;  // entries that are comments; not what is only to be ended first
};

// `root` resolves names like UUID=… of fstab, and has the configuration of a host that has moved before: what
// it has mounted is none of the manual setup.
Imported import_configuration(const SystemRoot& root, const Survey& survey, WallTime now);

}  // namespace spark::host
