#include "tests/histories/volumes/world/nvme_driver.hpp"

#include <sys/sysmacros.h>

#include <algorithm>

#include "nvmetcp/sysfs/registry.hpp"

namespace spark::histories {
namespace {

// Two keep-alives at most, and the time to notice.
constexpr Duration kNoticesSilence{5'000}, kNoticesSilenceLater{3'000};
constexpr Duration kNoticesReset{100};
constexpr Duration kReconnects{300}, kReconnectsLater{2'000};
constexpr Duration kNotice{200}, kNoticeLater{600};  // an asynchronous event, and the scan after it

}  // namespace

dev_t Head::device_number() const {
  return makedev(259, static_cast<unsigned>(number));
}

NvmeDriver::NvmeDriver(Scene scene, Network& network, std::size_t host, nvmetcp::HostIdentity identity,
                       Events events)
    : scene_(scene),
      network_(network),
      host_(host),
      identity_(std::move(identity)),
      events_(std::move(events)) {}

Result<std::string> NvmeDriver::connect(const std::string& subsystem, const nvmetcp::Portal& numeric,
                                        Actor by) {
  const std::string doing = "connect " + subsystem + " to " + to_string(numeric) + ": ";
  for (const Connection& one : connections_) {
    if (one.shown.subsystem == subsystem && one.shown.portal == numeric)
      return fail(Errc::Unavailable, doing + "already connected");
  }
  const Target* target = network_.reach(host_, numeric);
  if (target == nullptr) return fail(Errc::Unavailable, doing + "no answer");
  if (!target->offered.contains(subsystem))
    return fail(Errc::Denied, doing + "the target refuses this host, or does not have it");
  Connection made;
  int number = 1;
  while (find("nvme" + std::to_string(number)) != nullptr) ++number;
  made.shown.name = "nvme" + std::to_string(number);
  made.shown.subsystem = subsystem;
  made.shown.transport = "tcp";
  made.shown.state = "live";
  made.shown.portal = numeric;
  made.shown.host_nqn = identity_.nqn;
  made.shown.host_id = identity_.id;
  made.by_hand = by != Actor::Daemon;
  const std::string name = made.shown.name;
  connections_.push_back(std::move(made));
  scan(connections_.back());
  changed_ = scene_.time.steady();
  show();
  events_.changed(name);
  return name;
}

void NvmeDriver::remove(const std::string& controller, Actor by) {
  Connection* found = find(controller);
  if (found == nullptr) return;
  const auto heads = found->heads;
  for (const HeadPtr& head : heads) drop(*found, head, by);
  std::erase_if(connections_, [&](const Connection& one) { return one.shown.name == controller; });
  show();
  events_.changed(controller);
}

// By its address, not over another path of the multipath device.
bool NvmeDriver::is_usable(const Connection& connection) {
  const Target* target = network_.reach(host_, connection.shown.portal);
  return target != nullptr && target->offered.contains(connection.shown.subsystem);
}

void NvmeDriver::after(Duration wait, const std::string& controller, int round,
                       std::function<void(Connection&)> work) {
  auto due = [this, controller, round, work = std::move(work)] {
    Connection* found = find(controller);
    if (found != nullptr && found->round == round) work(*found);
  };
  (void)scene_.time.call_at(scene_.time.steady() + wait, std::move(due));
}

void NvmeDriver::network_changed(bool is_abrupt) {
  const auto later = [this](Duration first, Duration spread) {
    return first + Duration(scene_.random.below(static_cast<std::uint32_t>(spread.count())));
  };
  for (Connection& one : connections_) {
    const std::string name = one.shown.name;
    ++one.round;
    if (one.shown.is_live() && is_usable(one) && !is_abrupt) {
      after(later(kNotice, kNoticeLater), name, one.round, [this](Connection& changed) { scan(changed); });
    } else if (one.shown.is_live()) {
      const Duration wait = is_abrupt ? kNoticesReset : later(kNoticesSilence, kNoticesSilenceLater);
      after(wait, name, one.round, [this](Connection& changed) {
        set_state(changed, "connecting");
        if (network_.reach(host_, changed.shown.portal) != nullptr)
          after(kReconnects, changed.shown.name, changed.round,
                [this](Connection& again) { reconnect(again); });
      });
    } else if (network_.reach(host_, one.shown.portal) != nullptr) {
      after(later(kReconnects, kReconnectsLater), name, one.round,
            [this](Connection& changed) { reconnect(changed); });
    }
  }
}

// Since Linux 6.10 a target that answers, and refuses, ends the connection at once.
void NvmeDriver::reconnect(Connection& connection) {
  if (network_.reach(host_, connection.shown.portal) == nullptr) return;
  if (!is_usable(connection)) {
    scene_.tell("  the kernel removes " + connection.shown.name + ": the target refuses it");
    remove(connection.shown.name, Actor::Fault);
    return;
  }
  const std::string name = connection.shown.name;
  set_state(connection, "live");
  if (Connection* still = find(name)) scan(*still);
}

void NvmeDriver::rescan(const std::string& controller) {
  if (Connection* found = find(controller); found != nullptr && found->shown.is_live()) scan(*found);
}

void NvmeDriver::claim(const std::string& controller) {
  Connection* found = find(controller);
  if (found == nullptr || !found->shown.owner.empty()) return;
  found->shown.owner = nvmetcp::kOwner;
  show();
}

// Adds namespaces that are new, and removes those that are gone or have another identity.
void NvmeDriver::scan(Connection& connection) {
  const Target* target = network_.reach(host_, connection.shown.portal);
  if (target == nullptr) return;
  const auto offered = target->offered.find(connection.shown.subsystem);
  if (offered == target->offered.end()) return;
  const auto before = connection.heads;
  for (const HeadPtr& head : before) {
    const auto now = offered->second.find(head->nsid);
    if (now == offered->second.end() || now->second->ns_uuid != head->ns_uuid) {
      drop(connection, head, Actor::Fault);
    }
  }
  bool is_any_new = false;
  for (const auto& [nsid, disk] : offered->second) {
    const bool is_known = std::ranges::any_of(
        connection.heads, [&, its = nsid](const HeadPtr& head) { return head->nsid == its; });
    if (is_known) continue;
    connection.heads.push_back(make_head(connection, nsid, *disk));
    is_any_new = true;
  }
  if (is_any_new) events_.namespace_added();
}

// Another path of the same namespace, or a new device with the lowest free number.
HeadPtr NvmeDriver::make_head(const Connection& connection, std::uint32_t nsid, Disk& disk) {
  std::erase_if(heads_, [](const auto& one) { return one.expired(); });
  int number = 1;
  for (bool is_free = false; !is_free;) {
    is_free = true;
    for (const auto& one : heads_) {
      const HeadPtr head = one.lock();
      const bool is_same = !head->is_gone && head->subsystem == connection.shown.subsystem &&
                           head->nsid == nsid && head->ns_uuid == disk.ns_uuid;
      if (is_same) return head;
      if (head->number == number) is_free = false;
    }
    if (!is_free) ++number;
  }
  const auto made = std::make_shared<Head>();
  made->number = number;
  made->device = "nvme" + std::to_string(number) + "n1";
  made->subsystem = connection.shown.subsystem;
  made->nsid = nsid;
  made->disk = &disk;
  made->ns_uuid = disk.ns_uuid;
  heads_.push_back(made);
  return made;
}

void NvmeDriver::drop(Connection& connection, const HeadPtr& head, Actor by) {
  std::erase(connection.heads, head);
  const bool has_path = std::ranges::any_of(connections_, [&](const Connection& one) {
    return std::ranges::find(one.heads, head) != one.heads.end();
  });
  if (has_path) return;
  head->is_gone = true;
  events_.gone(head, by);
}

void NvmeDriver::set_state(Connection& connection, const std::string& state) {
  connection.shown.state = state;
  changed_ = scene_.time.steady();
  show();
  scene_.tell("  " + connection.shown.name + " is " + state);
  events_.changed(connection.shown.name);
}

void NvmeDriver::show() {
  shown_.clear();
  for (const Connection& one : connections_) shown_.push_back(one.shown);
}

void NvmeDriver::reboot() {
  for (Connection& one : connections_) {
    for (const HeadPtr& head : one.heads) head->is_gone = true;
  }
  connections_.clear();
  heads_.clear();
  show();
}

Connection* NvmeDriver::find(const std::string& controller) {
  const auto found =
      std::ranges::find_if(connections_, [&](const Connection& one) { return one.shown.name == controller; });
  return found == connections_.end() ? nullptr : &*found;
}

HeadPtr NvmeDriver::head_of(const std::string& path) const {
  for (const auto& one : heads_) {
    const HeadPtr head = one.lock();
    if (head && !head->is_gone && head->path() == path) return head;
  }
  return nullptr;
}

HeadPtr NvmeDriver::head_of(dev_t device) const {
  for (const auto& one : heads_) {
    const HeadPtr head = one.lock();
    if (head && !head->is_gone && head->device_number() == device) return head;
  }
  return nullptr;
}

std::vector<HeadPtr> NvmeDriver::lost_with(const std::vector<std::string>& leaving) const {
  std::vector<HeadPtr> lost, kept;
  for (const Connection& one : connections_) {
    const bool leaves = std::ranges::find(leaving, one.shown.name) != leaving.end();
    for (const HeadPtr& head : one.heads) (leaves ? lost : kept).push_back(head);
  }
  for (const HeadPtr& head : kept) std::erase(lost, head);
  return lost;
}

Io NvmeDriver::io(Head& head) {
  if (head.is_gone) return Io::Gone;
  for (const Connection& one : connections_) {
    const bool leads = std::ranges::any_of(one.heads, [&](const HeadPtr& its) { return its.get() == &head; });
    if (!leads || !one.shown.is_live()) continue;
    Disk* disk = network_.disk_at(host_, one.shown.portal, head.subsystem, head.nsid);
    if (disk == nullptr || disk->ns_uuid != head.ns_uuid) continue;
    if (disk != head.disk) {  // the same identity, as a copy of the disk has: the kernel can't tell
      head.disk = disk;
      head.exchanged = scene_.time.steady();
    }
    return Io::Good;
  }
  return Io::Blocked;
}

bool NvmeDriver::has_live_path(const Head& head) const {
  return std::ranges::any_of(connections_, [&](const Connection& one) {
    const auto is_it = [&](const HeadPtr& its) { return its.get() == &head; };
    return one.shown.is_live() && std::ranges::any_of(one.heads, is_it);
  });
}

bool NvmeDriver::may_write(const Head& head) const {
  const std::string holder = head.disk->holder();
  return holder.empty() || holder == identity_.id;
}

}  // namespace spark::histories
