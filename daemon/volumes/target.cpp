// Another target may offer a subsystem of the same NQN, and the kernel takes the two for one: of two
// namespaces with one number it shows the one that came first. The volume's controllers are those at an
// address of its own target; the strangers are at others.
#include <algorithm>

#include "base/text.hpp"
#include "daemon/volumes/volume.hpp"
#include "nvmetcp/resolve.hpp"
#include "nvmetcp/sysfs/registry.hpp"

namespace spark::volumes {

bool Volume::has_strangers() const {
  return !actions_->strangers(settings_.nvme->subsystem).empty();
}

// Which addresses a host name leads to is asked only where a controller is there that may be at one of them.
// False: a name can't be looked up.
asio::awaitable<bool> Volume::learn_names() {
  bool are_known = true;
  for (const Portal& portal : portals_) {
    if (!has_strangers()) co_return true;
    if (nvmetcp::is_numeric(portal.address.address)) continue;
    const auto numeric = co_await actions_->resolve(portal.address);
    are_known = are_known && numeric.has_value();
    if (!numeric) continue;
    for (const nvmetcp::Portal& one : *numeric) actions_->addresses().learn(one);
  }
  co_return are_known;
}

// The target may have more addresses than the configuration names: its own discovery log says so.
asio::awaitable<void> Volume::learn_offers() {
  if (!target_->tls_psk_file.empty()) co_return;  // its log would come in clear text
  for (const Portal& portal : portals_) {
    if (!has_strangers()) co_return;
    const auto log = co_await actions_->discover(portal.address, target_->interface);
    if (log) learn_from(*log);
  }
}

// What is mounted, once it is known which controllers are the target's.
asio::awaitable<Result<Place>> Volume::find_place() {
  const bool are_names_known = co_await learn_names();
  if (look_at_mount() == Place::Foreign) co_await learn_offers();
  const auto strangers = actions_->strangers(settings_.nvme->subsystem);
  const bool may_be_own = std::ranges::any_of(
      strangers, [](const nvmetcp::Controller& one) { return one.owner == nvmetcp::kOwner; });
  if (are_names_known || !may_be_own) co_return look_at_mount();
  co_return fail(Errc::Unavailable, "whether " + name_strangers() + " is of target " +
                                        printable(target_->name) +
                                        " can't be told: its name can't be looked up");
}

void Volume::learn_from(const nvmetcp::DiscoveryLog& log) {
  for (const nvmetcp::OfferedSubsystem& entry : log.entries) {
    const bool is_its = entry.nqn == settings_.nvme->subsystem && entry.transport == "tcp";
    if (is_its && entry.kind == nvmetcp::SubsystemKind::Io) actions_->addresses().learn(entry.portal);
  }
}

// A controller has come that is at no address known so far: the target is asked once whether it is its own.
asio::awaitable<void> Volume::look_at_strangers() {
  std::vector<std::string> names;
  for (const nvmetcp::Controller& stranger : actions_->strangers(settings_.nvme->subsystem))
    names.push_back(stranger.name);
  if (names == known_strangers_) co_return;
  co_await learn_names();
  co_await learn_offers();
  known_strangers_ = std::move(names);
}

// "nvme3 at 10.0.0.9:4420 (target spare)"
std::string Volume::name_strangers() const {
  std::vector<std::string> names;
  for (const nvmetcp::Controller& one : actions_->strangers(settings_.nvme->subsystem)) {
    const std::string target = actions_->target_at(one.portal);
    names.push_back(one.name + " at " + portal_text(one.portal) +
                    (target.empty() ? "" : " (target " + target + ")"));
  }
  return printable(join(names, ", "));
}

// No controller of another target leads to the namespace. One that is not live, as an address leaves behind
// that the target has no more, is in the way only where ours is connected and does not show it; one of a
// target of the configuration always is, as its I/O would go on over our connection if the two disks had one
// identity, as copies have.
Result<> Volume::check_no_rival() const {
  const config::NvmeSource& source = *settings_.nvme;
  auto strangers = actions_->strangers(source.subsystem);
  if (strangers.empty()) return {};
  const auto block = actions_->find_namespace(source.subsystem, source.nsid);
  const auto ours = actions_->controllers(source.subsystem);
  const bool is_connected = ours && std::ranges::any_of(*ours, &nvmetcp::Controller::is_live);
  if (block || !is_connected) {
    std::erase_if(strangers,
                  [&](const auto& one) { return !one.is_live() && actions_->target_at(one.portal).empty(); });
  }
  const auto theirs = actions_->find_namespace_below(strangers, source.nsid);
  if (!theirs || (block && block->device_number != theirs->device_number)) return {};
  return fail(
      Errc::Refused,
      namespace_name() + " is connected by " + name_strangers() + ", which is no address of target " +
          printable(target_->name) +
          ": Linux takes subsystems of one NQN for one, and can't tell the namespaces of two targets apart",
      "give the subsystem another NQN on one of the two targets; if the address is target " +
          printable(target_->name) + "'s as well, add it to its `portals`");
}

}  // namespace spark::volumes
