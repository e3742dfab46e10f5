#include "bench/facts/mount_facts.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/text.hpp"

namespace spark::bench {
namespace {

// Mount options first, then the superblock options that are not among them.
std::string all_options(const mounts::Mount& mount) {
  std::vector<std::string> options = split(decode_octal(mount.options), ',');
  const bool read_only_mount = std::ranges::count(options, "ro") > 0;
  for (const std::string& option : split(decode_octal(mount.super_options), ',')) {
    if (option == "rw" && read_only_mount) continue;
    if (std::ranges::count(options, option) == 0) options.push_back(option);
  }
  return join(options, ",");
}

}  // namespace

std::optional<MountFacts> find_mount(const std::vector<mounts::Mount>& table, std::string_view path,
                                     std::uint64_t device) {
  const auto rank = [&](const mounts::Mount& mount) {
    return std::pair(mount.device_number == device, mount.target.native().size());
  };
  const mounts::Mount* best = nullptr;
  for (const mounts::Mount& mount : table) {
    const std::string& point = mount.target.native();
    if (point != "/" && !is_at_or_below(path, point)) continue;
    if (best == nullptr || rank(mount) >= rank(*best)) best = &mount;
  }
  if (best == nullptr) return std::nullopt;
  return MountFacts{best->target.native(), best->source, best->type, all_options(*best)};
}

}  // namespace spark::bench
