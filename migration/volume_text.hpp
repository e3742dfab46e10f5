// Single targets and volumes of a configuration as YAML, with comments on settings that were not imported.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/kernel/mount_table.hpp"
#include "migration/survey/fabric_devices.hpp"
#include "migration/survey/fstab.hpp"
#include "migration/target_drafts.hpp"

namespace spark::host {

// One entry below `targets:` or `volumes:`, its lines indented by two.
struct Entry {
  std::string name;
  std::string yaml;  // what it can't do without: "  name:\n    key: …\n"
  // Settings, each a line or comments: taken over where the configuration accepts them.
  std::vector<std::string> details = {};
};

// A manual mount, from any source.
struct MountByHand {
  std::string mount, type, options;
  std::string origin;
};

Entry target_entry(const TargetDraft& target);
Entry nvme_volume_entry(const std::string& name, const std::string& target, const FabricDevice& device,
                        const MountByHand& mount);
Entry nfs_volume_entry(const std::string& name, const std::string& source, const MountByHand& mount);

// The same lines as comments, with the reason above them.
std::string commented(const Entry& entry, const std::string& reason);
// One detail as a comment, with the reason.
std::string left_out(const std::string& detail, const std::string& reason);

}  // namespace spark::host
