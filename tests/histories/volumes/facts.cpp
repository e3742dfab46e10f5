#include <algorithm>

#include "tests/histories/volumes/oracles.hpp"

namespace spark::histories {

// The file system that the volume has to be: of the configuration, or the first one recorded; empty: any.
std::string meant_uuid(const Facts& facts) {
  std::string& first = facts.state.meant[facts.settings.name];
  const std::string& configured = facts.volume.settings().nvme->filesystem_uuid;
  if (!configured.empty()) {
    first.clear();
    return configured;
  }
  const auto& pins = facts.state.host->state.pins;
  const auto pin = pins.find(facts.settings.name);
  // A mount in progress, which may wait after a takeover, still records the file system that the
  // configuration named before.
  const volumes::Status& now = facts.volume.status();
  const bool is_mounting = now.state == volumes::State::Mounting || now.state == volumes::State::Recovering ||
                           now.reason == "waiting until the other host's last writes have ended";
  if (first.empty() && pin != pins.end() && !is_mounting) first = pin->second.uuid;
  return first;
}

bool Facts::is_reached() const {
  return reached.super && reached.root == "/" && reached.shown.target == settings.mount &&
         reached.super->head->disk == &disk;
}

bool Facts::has_own_path() const {
  return is_reached() && std::ranges::any_of(state.host->driver.connections(), [&](const Connection& one) {
           return !one.by_hand && one.shown.is_live() &&
                  std::ranges::find(one.heads, reached.super->head) != one.heads.end();
         });
}

bool Facts::is_at_present_address() const {
  const std::string& address = cluster.target_of(settings).address;
  return std::ranges::any_of(state.host->driver.connections(), [&](const Connection& one) {
    return one.shown.portal.address == address &&
           std::ranges::find(one.heads, reached.super->head) != one.heads.end();
  });
}

// A publication remounts: that waits in the kernel for the address that its target has left, no signal ends
// it, and nothing may be written until it ends. The reason says what a person can do.
bool Facts::is_publishing_at_old_address(const Request& request) const {
  const bool is_its = (request.ask == Ask::Publish || request.ask == Ask::PublishThenWrite) &&
                      request.volume == settings.name;
  return is_its && top != nullptr && top->super && state.host->driver.io(*top->super->head) == Io::Blocked &&
         volume.status().reason.find("shows another disk as") != std::string::npos;
}

bool Facts::is_in_use() const {
  if (top == nullptr) return false;
  if (top->super && state.host->mounts.is_used_detached(*top->super)) return true;
  const auto& all = state.host->mounts.entries();
  return !top->files.empty() || std::ranges::any_of(all, [&](const MountEntry& one) {
    const bool is_same_device = one.shown.device_number == top->shown.device_number;
    return one.shown.parent_id == top->shown.id || (is_same_device && one.shown.id != top->shown.id);
  });
}

}  // namespace spark::histories
