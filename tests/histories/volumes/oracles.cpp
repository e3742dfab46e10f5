#include "tests/histories/volumes/oracles.hpp"

#include <algorithm>

namespace spark::histories {
namespace {

using volumes::State;

// The longest times that the product may take to notice: a mount that has changed (watch); a file system that
// was shut down (mounted_state); a silent device (keep-alive, and two probes with their deadlines); another
// host's writes.
constexpr Duration kNoticesMount{10'000}, kNoticesShutDown{40'000}, kNoticesFrozen{60'000},
    kNoticesSentence{75'000}, kNoticesHealth{75'000};
constexpr Duration kMmpNotices{40'000};
constexpr Duration kLongestRequest{30 * 60'000};

}  // namespace

std::string without_end(const Request& request) {
  static constexpr const char* kNames[] = {"up", "down", "take", "publish", "publish", "reload"};
  return std::string(kNames[static_cast<std::size_t>(request.ask)]) + "-without-end";
}

void Oracles::each(const std::function<void(const Facts&)>& look) {
  for (std::size_t i = 0; i < kHosts; ++i) {
    HostState& state = cluster_.hosts[i];
    if (!state.daemon) continue;
    for (const auto& volume : state.daemon->volumes().all()) {
      const std::string& name = volume->settings().name;
      const auto settings = std::ranges::find(state.volumes, name, &VolumeSettings::name);
      MountTree& mounts = state.host->mounts;
      const std::string& place = volume->settings().mount.native();
      const Facts facts{cluster_,
                        state,
                        *settings,
                        *volume,
                        cluster_.disk_of(*settings),
                        mounts.resolve(place),
                        mounts.top_at(place),
                        i};
      look(facts);
    }
  }
}

void Oracles::must_end(std::string key, bool holds, Duration grace, const std::string& oracle,
                       const std::function<std::string()>& what) {
  if (!holds) {
    since_.erase(key);
    return;
  }
  const SteadyTime now = cluster_.time.steady();
  const auto begun = since_.emplace(std::move(key), now).first->second;
  if (now - begun >= grace) cluster_.judge.broken(oracle, what());
}

void Oracles::observe() {
  for (const HostState& state : cluster_.hosts) {
    // No daemon there notices anything: its time to do so begins with its start.
    const std::string place = " " + state.host->name + "/";
    const auto is_there = [&](const auto& one) { return one.first.find(place) != std::string::npos; };
    if (!state.daemon) std::erase_if(since_, is_there);
  }
  look_for_two_writers();
  each([&](const Facts& facts) {
    look_at_state(facts);
    look_at_sentences(facts);
    look_at_wish(facts);
  });
  look_at_requests();
}

void Oracles::look_for_two_writers() {
  for (Disk& disk : cluster_.network.disks) {
    std::string writers;
    std::size_t count = 0;
    for (HostState& state : cluster_.hosts) {
      for (const SuperPtr& super : state.host->mounts.supers()) {
        // Looking at it first makes the driver notice a disk of the same identity.
        const bool is_good = state.host->driver.io(*super->head) == Io::Good;
        // Only the next probe of a daemon there can notice a takeover that an operator asked for, and that
        // the target forgot (docs/sharing.md, While it is mounted).
        if (super->was_taken && (!state.daemon || !super->was_seen)) continue;
        const bool writes = super->is_writer() && !super->by_hand && !super->is_exempt &&
                            super->head->disk == &disk && disk.fs.uuid == super->uuid &&
                            !super->head->read_only && is_good && state.host->driver.may_write(*super->head);
        if (!writes || !state.host->mounts.is_mounted(*super)) continue;
        writers += (count > 0 ? " and " : "") + state.host->name;
        ++count;
        break;
      }
    }
    must_end("writers " + disk.name, count > 1 && !disk.is_unfenced,
             disk.fs.has_mmp ? kMmpNotices : Duration(0), "two-writers",
             [&] { return writers + " have " + disk.name + " mounted for writing"; });
  }
}

void Oracles::look_at_state(const Facts& facts) {
  const volumes::Status& status = facts.volume.status();
  const bool is_ready = status.state == State::Ready;
  const std::string place = facts.volume.settings().mount.native();
  const MountEntry& reached = facts.reached;
  const std::string what = facts.name() + " is ready";
  const auto say = [&](const std::string& rest) { return [=] { return what + rest; }; };

  const bool is_covered = facts.top != nullptr && reached.shown.id != facts.top->shown.id;
  const bool is_bare = facts.top == nullptr;
  must_end("covered " + facts.name(), is_ready && is_covered, kNoticesMount, "ready-under-a-cover",
           say(", and a mount covers the folder that its mount point is in"));
  // The looks are as far apart as the daemon's own may be: each may meet an unmount that it has just begun,
  // to mount a newer state. So each stretch of `ready` counts on its own.
  const auto since = std::to_string(status.since.time_since_epoch().count());
  must_end("bare " + facts.name() + since, is_ready && is_bare, kNoticesMount, "ready-and-not-mounted",
           say(", and nothing is mounted there"));
  must_end("folder " + facts.name(), is_ready && !is_covered && !is_bare && reached.root != "/",
           kNoticesMount, "ready-with-a-folder",
           say(", and only a folder of its file system is mounted there"));
  const std::string meant = meant_uuid(facts);
  const bool is_other = !is_covered && !is_bare && reached.root == "/" &&
                        (!reached.super || (!meant.empty() && reached.super->uuid != meant));
  must_end("other " + facts.name(), is_ready && is_other, kNoticesShutDown, "ready-with-another-disk",
           say(", and another file system is mounted there: " + reached.shown.source));
  const Super* super = facts.is_reached() ? reached.super.get() : nullptr;
  must_end("dead " + facts.name(), is_ready && super != nullptr && !super->is_alive(), kNoticesShutDown,
           "ready-and-dead", say(", and its file system is dead"));
  const bool is_frozen = super != nullptr && facts.state.host->driver.io(*super->head) == Io::Blocked;
  must_end("frozen " + facts.name(), is_ready && is_frozen, kNoticesFrozen, "ready-and-frozen",
           say(", and its device does not answer"));
  const bool is_read_only =
      super != nullptr && super->read_only && facts.volume.settings().access == config::Access::Exclusive;
  must_end("silent " + facts.name(), is_ready && is_read_only && status.reason.empty(), kNoticesShutDown,
           "read-only-without-reason", say(" without a remark, and exclusive, and mounted read-only"));
  const bool is_written = facts.state.written.contains(facts.settings.name);
  must_end("written " + facts.name(), is_ready && is_read_only && is_written && !reached.by_hand,
           kNoticesMount, "up-and-read-only",
           say(", exclusive, and mounted read-only, and an operator has asked to write it"));
  const std::string uuid = facts.volume.settings().nvme->filesystem_uuid;
  must_end("uuid " + facts.name(), is_ready && super != nullptr && !uuid.empty() && super->uuid != uuid,
           kNoticesMount, "ready-with-another-uuid",
           say(" with another file system than the configured one"));
  // A call that had waited in another host's kernel wrote as soon as its link was back, and the target had
  // forgotten this host's reservation by then. No look shows it: `fsfreeze` closes an ext4 on its disk too,
  // and a writer's own kernel changes the superblock of an xfs. docs/sharing.md says so.
  const bool is_late = facts.disk.fs.is_writer_late;
  const bool is_outdated = super != nullptr && super->is_writer() && !super->by_hand && !super->is_exempt &&
                           !facts.disk.is_unfenced && !facts.disk.fs.is_writer_by_hand && !is_late &&
                           facts.disk.fs.writer != super->base_writer;
  // What the daemon can't know: what happened before its start; whether another host has mounted an xfs that
  // is still open.
  const bool is_older = super != nullptr && super->opened < facts.state.daemon->started();
  const bool is_open_xfs = facts.disk.fs.type == "xfs" && facts.disk.fs.is_open;
  must_end("outdated " + facts.name(), is_ready && is_outdated, kNoticesShutDown,
           is_older      ? "ready-and-outdated-after-a-restart"
           : is_open_xfs ? "ready-and-outdated-open-xfs"
                         : "ready-and-outdated",
           say(" and writable, and another host has written its file system since"));

  const bool is_ours = super != nullptr && !reached.by_hand;
  must_end("down " + facts.name(), status.state == State::Down && is_ours, kNoticesMount, "down-and-mounted",
           [&] { return facts.name() + " is down, and still mounted"; });
  must_end("well " + facts.name(), is_well(facts) && !is_ready && status.state != State::Refused,
           kNoticesHealth, "healthy-and-not-ready", [&] {
             return facts.name() + " is mounted and healthy, and " + to_string(status.state) + ": " +
                    status.reason;
           });
}

// Nothing has to be done for it: it is mounted as configured, by the daemon, and its disk answers.
bool Oracles::is_well(const Facts& facts) const {
  if (!facts.is_reached() || facts.reached.by_hand || facts.top == nullptr) return false;
  const Super& super = *facts.reached.super;
  const bool is_exclusive = facts.volume.settings().access == config::Access::Exclusive;
  if (!super.is_alive() || facts.state.host->driver.io(*super.head) != Io::Good) return false;
  if (!facts.has_own_path()) return false;
  if (facts.state.wish(facts.settings.name) != Wish::Up) return false;
  if (facts.state.daemon->is_busy(facts.settings.name)) return false;
  if (facts.disk.fs.uuid != super.uuid || facts.state.host->workers.is_stuck(facts.settings.name))
    return false;
  if (is_exclusive != !super.read_only) return false;
  return !is_exclusive ||
         (facts.disk.fs.writer == super.base_writer && !facts.state.host->file_systems.has_lost_fence(super));
}

void Oracles::look_at_sentences(const Facts& facts) {
  const volumes::Status& status = facts.volume.status();
  const auto look = [&](const std::string& sentence) {
    if (sentence.empty()) return;
    if (!is_known(sentence))
      cluster_.judge.broken("unknown-sentence", facts.name() + " is " + to_string(status.state) +
                                                    " and says: \"" + sentence + "\"");
    const std::string oracle = false_oracle_of(sentence, facts);
    const auto since = std::to_string(status.since.time_since_epoch().count());
    must_end("said " + facts.name() + since + ": " + sentence, !oracle.empty(), kNoticesSentence, oracle,
             [&] {
               return facts.name() + " is " + to_string(status.state) + " and says what is not true: \"" +
                      sentence + "\"";
             });
  };
  look(status.reason);
  for (const auto& [kind, warning] : status.warnings) look(warning);
}

void Oracles::look_at_wish(const Facts& facts) {
  const std::string& name = facts.settings.name;
  const Wish wish = facts.state.wish(name);
  if (wish == Wish::Unknown || facts.state.daemon->is_busy(name)) return;
  const auto found = facts.state.daemon->volumes().find(name);
  const auto& intent = found->requests().intent();
  if (!intent || intent->up == (wish == Wish::Up)) return;
  cluster_.judge.broken("intent-lost", facts.name() + " is to be " + (wish == Wish::Up ? "up" : "down") +
                                           ", and the daemon has recorded the opposite");
}

bool Oracles::may_wait(std::size_t host, const Request& request) {
  bool may = false;
  each([&](const Facts& facts) {
    may = may || (facts.index == host && facts.is_publishing_at_old_address(request));
  });
  return may;
}

void Oracles::look_at_requests() {
  for (HostState& state : cluster_.hosts) {
    if (!state.daemon) continue;
    for (const RequestPtr& one : state.daemon->requests()) {
      const bool is_long = !one->result && cluster_.time.steady() - one->since > kLongestRequest;
      if (is_long && !may_wait(state.host->index, *one))
        cluster_.judge.broken(without_end(*one), state.host->name + ": " + to_string(one->ask) + " " +
                                                     one->volume + " does not end");
    }
  }
}

}  // namespace spark::histories
