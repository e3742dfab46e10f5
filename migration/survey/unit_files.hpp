// Unit files of this host's administrator, as systemd reads them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.hpp"
#include "migration/survey/local_files.hpp"

namespace spark::host {

struct UnitFile {
  std::string name;                     // "nvme-rosa-connect.service"
  std::string file;                     // "/etc/systemd/system/nvme-rosa-connect.service"
  bool is_link = false;                 // to a file in another folder: `systemctl disable` removes it
  std::vector<std::string> links = {};  // that start it: "/etc/systemd/system/multi-user.target.wants/…"
};

// With each one's text. Those below /etc/systemd/system and /usr/local/lib/systemd/system whose name ends so;
// without the distribution's own, other names of a unit in the same folder, and links to what LocalFiles does
// not read.
std::vector<std::pair<UnitFile, std::string>> read_unit_files(const LocalFiles& files,
                                                              std::string_view ending);

// "ExecStart" and its value for each setting, sections left out; lines that end in a backslash are one.
std::vector<std::pair<std::string, std::string>> unit_settings(std::string_view text);

}  // namespace spark::host
