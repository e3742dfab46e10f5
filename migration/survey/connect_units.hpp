// Service units of this host's administrator that connect NVMe over fabrics by hand.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "migration/survey/connect_command.hpp"
#include "migration/survey/unit_files.hpp"

namespace spark::host {

struct ConnectUnit : UnitFile {
  std::vector<ManualConnection> connections;
  // One for each `nvme connect-all`, without a subsystem; no address: those of nvme-cli's own files.
  std::vector<ManualConnection> discovered;
  bool connects_all = false;           // `nvme connect-all`, with connections or nvme-cli's own files
  std::vector<std::string> others;     // its commands that neither connect nor wait
  std::vector<std::string> needed_by;  // files that can't start without it
  bool disconnects = false;            // stopping it disconnects
  bool tries_again = false;            // Restart= is set, or a loop of its script does it
  bool stops_early = false;            // after a connection that fails, the others are not tried
};

// The unit in one file's text; no connections and not connects_all: it is none of that kind.
ConnectUnit parse_unit(std::string_view text);

// Of parse_unit(), for one start command: in start_commands.cpp.
// Adds the connections of one command line, and its commands that neither connect nor wait.
void read_start_command(const std::string& line, ConnectUnit& unit);

// Its words, without the characters before it that have a meaning for systemd.
std::vector<std::string> start_command_words(const std::string& line);

bool is_start_command(std::string_view key);  // "ExecStart", say

// Whether the unit goes on when the command fails.
bool may_fail(std::string_view line);

// Those below /etc/systemd/system and /usr/local/lib/systemd/system; the distribution's own are left out.
std::vector<ConnectUnit> read_connect_units(const LocalFiles& files);

// A file of this host's administrator that names a mount: a unit, or a drop-in of one.
struct MountNeed {
  std::string file;   // "/etc/systemd/system/docker.service.d/order.conf"
  std::string words;  // "RequiresMountsFor=/mnt/data/images", "Requires=mnt-data.mount"
  std::string path;   // "/mnt/data/images", "/mnt/data"
};

std::vector<MountNeed> mount_needs(const LocalFiles& files);

// A sentence for each script of a unit, rc.local, or table of cron that connects. They are not
// parsed.
std::vector<std::string> unread_scripts(const LocalFiles& files);

}  // namespace spark::host
