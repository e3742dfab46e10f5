// All that a person set up by hand on this host to reach shared storage. Reads files alone: never blocks.
#pragma once

#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/kernel/mount_table.hpp"
#include "migration/survey/connect_command.hpp"
#include "migration/survey/connect_units.hpp"
#include "migration/survey/fabric_devices.hpp"
#include "migration/survey/fstab.hpp"
#include "migration/survey/mount_units.hpp"
#include "migration/survey/uses.hpp"

namespace spark::host {

struct Survey {
  std::vector<FstabLine> fstab;
  std::vector<MountUnit> mount_units;
  std::vector<ConnectUnit> units;
  std::vector<MountNeed> mount_needs;
  std::vector<ManualConnection> discovery_conf, config_json;
  std::vector<FabricDevice> devices;
  std::vector<mounts::Mount> mounts;
  std::vector<Use> uses;
  std::string host_nqn, host_id;    // of /etc/nvme; empty: no such file
  std::vector<std::string> unread;  // a sentence for each file that is there and can't be read
};

Survey survey(const SystemRoot& root);

}  // namespace spark::host
