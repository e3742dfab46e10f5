#include "daemon/volumes/paths/rivals.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "daemon/log.hpp"
#include "daemon/volumes/release_step.hpp"
#include "nvmetcp/resolve.hpp"
#include "nvmetcp/sysfs/registry.hpp"

namespace spark::volumes {
namespace {

constexpr Duration kRecordAgain{60'000};

json::array portals_of(const config::Target& target) {
  json::array portals;
  for (const nvmetcp::Portal& portal : target.portals) portals.emplace_back(to_string(portal));
  return portals;
}

}  // namespace

Rivals::Rivals(VolumeContext& volume) : volume_(volume) {
  if (!volume.target) return;
  volume.seams.snapshot.addresses().restrict_to(volume.target->portals);
  recall();
}

// Only for connections that this daemon made before its restart: another one at such an address may lead to a
// target that has the address by now.
void Rivals::recall() {
  remembered_ = volume_.seams.store.saved(Record::Addresses);
  const auto* portals = get_array(remembered_, "portals");
  const auto* addresses = get_array(remembered_, "addresses");
  if (portals == nullptr || addresses == nullptr || *portals != portals_of(*volume_.target)) return;
  for (const nvmetcp::Controller& one : volume_.seams.snapshot.strangers(volume_.settings.nvme->subsystem)) {
    const bool is_saved = std::ranges::count(*addresses, json::value(to_string(one.portal))) > 0;
    if (is_saved && one.owner == nvmetcp::kOwner)
      volume_.seams.snapshot.addresses().learn(one.portal, one.subsystem);
  }
}

asio::awaitable<void> Rivals::remember() {
  const auto all = volume_.seams.snapshot.controllers(volume_.settings.nvme->subsystem);
  if (!all || all->empty() || volume_.clock.steady() < next_record_) co_return;
  json::object record{{"portals", portals_of(*volume_.target)}};
  json::array& addresses = record["addresses"].emplace_array();
  for (const nvmetcp::Controller& one : *all) {
    if (std::ranges::count(volume_.target->portals, one.portal) == 0)
      addresses.emplace_back(to_string(one.portal));
  }
  if (record == remembered_ || (addresses.empty() && remembered_.empty())) co_return;
  const auto saved = co_await volume_.seams.store.save(Record::Addresses, record);
  if (saved) {
    remembered_ = std::move(record);
  } else {
    next_record_ = volume_.clock.steady() + kRecordAgain;
    log::survived(saved.error());
  }
}

bool Rivals::are_there() const {
  return !volume_.seams.snapshot.strangers(volume_.settings.nvme->subsystem).empty();
}

// False if a name can't be resolved.
asio::awaitable<bool> Rivals::learn_names() {
  bool are_known = true;
  const auto portals = volume_.target->portals;
  for (const nvmetcp::Portal& portal : portals) {
    if (!are_there()) co_return true;
    if (nvmetcp::is_numeric(portal.address)) continue;
    const auto numeric = co_await volume_.seams.fabric.resolve(portal);
    are_known = are_known && numeric.has_value();
    if (!numeric) continue;
    for (const nvmetcp::Portal& one : *numeric) volume_.seams.snapshot.addresses().learn(one);
  }
  co_return are_known;
}

asio::awaitable<Result<Place>> Rivals::find_place() {
  const bool are_names_known = co_await learn_names();
  if (volume_.look_at_mount() == Place::Foreign) co_await learn_offers();
  const auto strangers = volume_.seams.snapshot.strangers(volume_.settings.nvme->subsystem);
  const bool may_be_own = std::ranges::any_of(
      strangers, [](const nvmetcp::Controller& one) { return one.owner == nvmetcp::kOwner; });
  const Standing there = volume_.look_at_standing();
  const auto theirs = volume_.seams.snapshot.find_namespace_below(strangers, volume_.settings.nvme->nsid);
  const bool is_mounted =
      there.place == Place::Foreign && theirs && theirs->device_number == there.top->device_number;
  if (are_names_known || (!may_be_own && !is_mounted)) co_return there.place;
  co_return fail(Errc::Unavailable,
                 "whether " + names() + " is of target " + printable(volume_.target->name) +
                     " can't be told: its name can't be looked up",
                 "try again when a name service answers");
}

asio::awaitable<void> Rivals::learn_offers() {
  if (!volume_.target->options.tls_psk_file.empty()) co_return;  // the log would be sent in clear text
  const auto portals = volume_.target->portals;
  for (const nvmetcp::Portal& portal : portals) {
    if (!are_there()) co_return;
    const auto log = co_await volume_.seams.fabric.discover(portal, volume_.target->options.interface);
    if (log) learn_from(*log);
  }
}

void Rivals::learn_from(const nvmetcp::DiscoveryLog& log) {
  for (const nvmetcp::OfferedSubsystem& entry : log.entries) {
    const bool is_its = entry.nqn == volume_.settings.nvme->subsystem && entry.transport == "tcp";
    if (is_its && entry.kind == nvmetcp::SubsystemKind::Io)
      volume_.seams.snapshot.addresses().learn(entry.portal, entry.nqn);
  }
}

asio::awaitable<void> Rivals::look() {
  std::vector<std::string> names;
  for (const nvmetcp::Controller& stranger :
       volume_.seams.snapshot.strangers(volume_.settings.nvme->subsystem))
    names.push_back(stranger.name);
  if (names == known_) co_return;
  co_await learn_names();
  co_await learn_offers();
  known_ = std::move(names);
}

std::string Rivals::names() const {
  std::vector<std::string> names;
  for (const nvmetcp::Controller& one : volume_.seams.snapshot.strangers(volume_.settings.nvme->subsystem)) {
    const std::string target = volume_.seams.neighbours.target_at(one.portal);
    names.push_back(one.name + " at " + to_string(one.portal) +
                    (target.empty() ? "" : " (target " + target + ")"));
  }
  return printable(join(names, ", "));
}

Result<> Rivals::check_none() const {
  const config::NvmeSource& source = *volume_.settings.nvme;
  auto strangers = volume_.seams.snapshot.strangers(source.subsystem);
  if (strangers.empty()) return {};
  const auto block = own_namespace(volume_.seams, volume_.settings);
  if (block || !has_live_path(volume_.seams, volume_.settings)) {
    std::erase_if(strangers, [&](const auto& one) {
      return !one.is_live() && volume_.seams.neighbours.target_at(one.portal).empty();
    });
  }
  const auto theirs = volume_.seams.snapshot.find_namespace_below(strangers, source.nsid);
  if (!theirs || (block && block->device_number != theirs->device_number)) return {};
  return fail(Errc::Refused,
              namespace_name(volume_) + " is connected by " + names() + ", which is no address of target " +
                  printable(volume_.target->name) +
                  ": Linux treats subsystems with the same NQN as one, and can't tell the namespaces of two "
                  "targets apart",
              "give the subsystem another NQN on one of the two targets; if the address is target " +
                  printable(volume_.target->name) + "'s as well, add it to its `portals`");
}

}  // namespace spark::volumes
