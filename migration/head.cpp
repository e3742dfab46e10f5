#include "migration/head.hpp"

#include <set>

#include "base/text.hpp"

namespace spark::host {
namespace {

// Empty: none, or several.
std::string running_host(const Survey& survey) {
  std::set<std::string> hosts;
  for (const FabricDevice& device : survey.devices) {
    for (const nvmetcp::Controller& path : device.paths) hosts.insert(printable(path.host_nqn));
  }
  return hosts.size() == 1 ? *hosts.begin() : "";
}

}  // namespace

std::string head_text(const Survey& survey, const std::vector<Item>& items, WallTime now) {
  std::string text = "# Made by `spark-stage import` at " + rfc3339(now) +
                     "\n# from /etc/fstab, units that connect, /etc/nvme/config.json,\n"
                     "# /etc/nvme/discovery.conf and the current connections and mounts.\n"
                     "# Check it; every key: spark-stage.yaml(5).\n";
  if (const std::string host = running_host(survey); survey.host_nqn.empty() && !host.empty())
    text += "# /etc/nvme/hostnqn is missing, and spark-staged makes one. The current connections use\n# " +
            host + ":\n# write it there first if the target allows hosts by name.\n";
  for (const std::string& sentence : survey.unread) text += "# Not read: " + printable(sentence) + "\n";
  for (const Item& item : items) {
    const bool has_entry =
        item.what.starts_with("target") || item.what.starts_with("volume ") || !item.fstab_line.empty();
    if (!item.ended_by.empty()) {
      text += "# " + item.what + ", " + item.where + ": " + item.reason + "\n";
    } else if (!item.is_taken() && !has_entry) {
      text += "# Not taken over from " + item.origin + ": " + item.reason + "\n";
    }
  }
  return text;
}

}  // namespace spark::host
