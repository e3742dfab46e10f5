// Which sentences of the status are true. One of no known kind is a violation.
#include <algorithm>
#include <array>
#include <string_view>

#include "tests/histories/volumes/oracles.hpp"

namespace spark::histories {
namespace {

bool has(const std::string& sentence, std::string_view words) {
  return sentence.find(words) != std::string::npos;
}

// The uuid after "file system ", if any.
std::string uuid_in(const std::string& sentence, std::string_view before) {
  const std::size_t at = sentence.find(before);
  return at == std::string::npos ? "" : sentence.substr(at + before.size(), 36);
}

// The disk that the host is connected to; null: none.
Disk* connected_disk(const Facts& facts) {
  for (const bool wants_live : {true, false}) {
    for (const Connection& one : facts.state.host->driver.connections()) {
      if (one.shown.is_live() != wants_live || one.shown.subsystem != facts.settings.subsystem) continue;
      for (const HeadPtr& head : one.heads) {
        if (head->nsid == facts.settings.nsid) return head->disk;
      }
    }
  }
  return nullptr;
}

Disk& disk_of(const Facts& facts) {
  Disk* connected = connected_disk(facts);
  return connected == nullptr ? facts.disk : *connected;
}

bool is_held_by_other(const Facts& facts) {
  const std::string holder = disk_of(facts).holder();
  return !holder.empty() && holder != facts.state.host->driver.identity().id;
}

// A live mount for writing on the other host.
bool has_other_writer(const Facts& facts) {
  for (HostState& other : facts.cluster.hosts) {
    if (&other == &facts.state) continue;
    for (const SuperPtr& super : other.host->mounts.supers()) {
      if (super->head->disk == &disk_of(facts) && !super->read_only) return true;
    }
  }
  return false;
}

// Another volume, or a mount by hand, needs the volume's connection, which therefore can't be cut.
bool has_neighbour(const Facts& facts) {
  const auto supers = facts.state.host->mounts.supers();
  const bool is_mounted = std::ranges::any_of(
      supers, [&](const SuperPtr& super) { return super->head->nsid != facts.settings.nsid; });
  return is_mounted || std::ranges::any_of(facts.state.volumes, [&](const VolumeSettings& other) {
           return other.name != facts.settings.name && other.subsystem == facts.settings.subsystem;
         });
}

struct Kind {
  std::string_view words, oracle;
  bool (*is_true)(const std::string& sentence, const Facts& facts);
};

constexpr std::array kKinds =
    {
        Kind{"was mounted with other options than", "false-mounted-by-another",
             [](const std::string&, const Facts& facts) {
               if (facts.state.host->state.not_pinned.contains(facts.settings.name)) return true;
               // Perhaps hidden by now, by a mount over a parent folder.
               return std::ranges::any_of(facts.state.host->mounts.entries(), [&](const MountEntry& one) {
                 return one.super && one.shown.target == facts.volume.settings().mount &&
                        (one.by_hand || one.super->by_hand);
               });
             }},
        Kind{"is mounted read-write already", "false-mounted-otherwise",
             [](const std::string&, const Facts& facts) {
               return facts.top != nullptr && facts.top->super && !facts.top->super->read_only;
             }},
        Kind{"is mounted read-only already", "false-mounted-otherwise",
             [](const std::string&, const Facts& facts) {
               return facts.top != nullptr && facts.top->super && facts.top->super->read_only;
             }},
        Kind{"shows file system", "false-other-file-system",
             [](const std::string& sentence, const Facts& facts) {
               return facts.top != nullptr && facts.top->super &&
                      facts.top->super->uuid == uuid_in(sentence, "shows file system ");
             }},
        Kind{"is mounted for writing, and this host does not hold", "false-mounted-for-writing",
             [](const std::string&, const Facts& facts) {
               return facts.top != nullptr && facts.top->super && !facts.top->super->read_only;
             }},
        Kind{"its connection stayed as it went down", "false-connection",  // of that moment
             [](const std::string&, const Facts&) { return true; }},
        Kind{"offers no reservations any more", "false-no-reservations",
             [](const std::string&, const Facts& facts) { return !disk_of(facts).reservations.offers; }},
        Kind{"offers none", "false-no-reservations",
             [](const std::string&, const Facts& facts) { return !disk_of(facts).reservations.offers; }},
        Kind{"has it open, or died while it had (MMP)", "false-open-elsewhere",
             [](const std::string&, const Facts& facts) {
               const Disk& disk = disk_of(facts);
               return disk.fs.is_open || disk.fs.mmp_open;
             }},
        Kind{"another host holds a reservation on", "false-holder",
             [](const std::string&, const Facts& facts) { return is_held_by_other(facts); }},
        Kind{"holds the reservation of", "false-holder",
             [](const std::string&, const Facts& facts) { return is_held_by_other(facts); }},
        Kind{"has taken over", "false-holder",
             [](const std::string&, const Facts& facts) {
               return is_held_by_other(facts) || has_other_writer(facts) ||
                      (facts.top != nullptr && facts.top->super && !facts.top->super->is_alive());
             }},
        Kind{"has it open for writing, or died", "false-open-elsewhere",
             [](const std::string&, const Facts& facts) {
               return disk_of(facts).fs.is_open || disk_of(facts).fs.mmp_open;
             }},
        Kind{"is being written by another host, or was not unmounted", "false-being-written",
             [](const std::string&, const Facts& facts) { return disk_of(facts).fs.is_open; }},
        Kind{"being written by another host: reads here", "false-being-written",
             [](const std::string&, const Facts& facts) {
               return disk_of(facts).fs.is_open || has_other_writer(facts);
             }},
        Kind{"hides volume", "false-on-top",
             [](const std::string&, const Facts& facts) {
               // Whose connection leads to the upper mount, a person's, can't be known without names, or once
               // its target has left the address.
               const bool has_dns = facts.cluster.network.has_dns[facts.index];
               return !facts.is_reached() ||
                      (facts.reached.by_hand && (!has_dns || !facts.is_at_present_address()));
             }},
        Kind{"is mounted there, and is not this volume's", "false-other-mount",
             [](const std::string&, const Facts& facts) { return facts.top != nullptr; }},
        Kind{"published as generation", "false-generation",
             [](const std::string& sentence, const Facts& facts) {
               const auto& published = disk_of(facts).fs.published;
               return published &&
                      has(sentence, "generation " + std::to_string(published->generation) + ":") &&
                      facts.top != nullptr && facts.top->super && facts.top->super->read_only;
             }},
        Kind{"it is in use by", "false-in-use",
             [](const std::string&, const Facts& facts) { return facts.is_in_use(); }},
        Kind{"may be an older copy", "advice-without-effect",
             [](const std::string&, const Facts& facts) {
               const auto& pins = facts.state.host->state.pins;
               const auto pin = pins.find(facts.settings.name);
               return pin != pins.end() && disk_of(facts).fs.bytes < pin->second.bytes;
             }},
        Kind{"shows another disk as", "false-another-disk",
             [](const std::string&, const Facts& facts) {
               return facts.top != nullptr && facts.top->super &&
                      facts.top->super->head->disk != connected_disk(facts);
             }},
        Kind{"I/O waits for nvme", "false-left-address",
             [](const std::string&, const Facts& facts) {
               const std::string& address = facts.cluster.target_of(facts.settings).address;
               return std::ranges::any_of(
                   facts.state.host->driver.connections(), [&](const Connection& one) {
                     return !one.shown.is_live() && one.shown.portal.address != address;
                   });
             }},
        Kind{"another program unmounted", "false-unmounted-by-another",
             [](const std::string&, const Facts& facts) { return facts.top == nullptr; }},
        Kind{"another program mounted another", "false-mounted-by-another",
             [](const std::string&, const Facts& facts) {
               return facts.top != nullptr && facts.top->by_hand;
             }},
        Kind{"errors are recorded", "false-damage",
             [](const std::string&, const Facts& facts) { return !disk_of(facts).fs.damage.empty(); }},
        Kind{"holds file system", "false-other-file-system",
             [](const std::string& sentence, const Facts& facts) {
               const Disk* disk = connected_disk(facts);
               return disk == nullptr || disk->fs.uuid == uuid_in(sentence, "holds file system ");
             }},
        Kind{"holds another file system", "false-other-file-system",
             [](const std::string& sentence, const Facts& facts) {
               if (has(sentence, "no path to the target is live")) return true;  // so it tells of the last look
               const Disk* disk = connected_disk(facts);
               const bool is_mounted = facts.top != nullptr && facts.top->super;
               return disk == nullptr || !is_mounted || disk->fs.uuid != facts.top->super->uuid;
             }},
        Kind{"the dead mount stays, as its unmount would write to ", "false-dead-mount",
             [](const std::string& sentence, const Facts& facts) {
               const bool is_there = facts.top != nullptr && facts.top->super;
               return is_there && (!has(sentence, "other volumes use") || has_neighbour(facts));
             }},
        Kind{"is not fenced", "false-not-fenced",
             [](const std::string&, const Facts& facts) {
               const bool has_reservation =
                   disk_of(facts).reservations.offers && facts.volume.settings().fence != config::Fence::Mmp;
               return !has_reservation && !disk_of(facts).fs.has_mmp;
             }},
        Kind{"was taken down by", "false-taken-down",
             [](const std::string&,
                const Facts& facts) { return facts.state.wish(facts.settings.name) != Wish::Up; }},
        Kind{"is not empty", "false-not-empty",
             [](const std::string&,
                const Facts&
                    facts) { return !facts.state.host->root.at(facts.settings.mount).files.empty(); }},
        Kind{"its file system is mounted at", "false-mounted-elsewhere",
             [](const std::string&, const Facts& facts) {
               const auto& all = facts.state.host->mounts.entries();
               return facts.top != nullptr && std::ranges::count(all, facts.top->super, &MountEntry::super) > 1;
             }},
        Kind{"or a mount that this host's mount table does not show", "false-mounted-elsewhere",
             [](const std::string&, const Facts& facts) {
               return std::ranges::any_of(facts.state.host->mounts.supers(), [&](const SuperPtr& one) {
                 return one->head->disk == &disk_of(facts);
               });
             }},
        Kind{"the device is mounted at", "false-mounted-elsewhere",
             [](const std::string&, const Facts& facts) {
               return std::ranges::any_of(facts.state.host->mounts.entries(), [&](const MountEntry& one) {
                 return one.super && one.super->head->disk == &disk_of(facts);
               });
             }},
};

// What the daemon does at the moment, or how its last attempt ended: true when it is said. That it ends,
// other oracles tell.
constexpr auto kOfAttempts =
    std::to_array<std::string_view>({"the target forgot the reservation of ",
                                     "was taken from this host",
                                     "has opened ",
                                     "writing was stopped here",
                                     "nothing is mounted on ",
                                     "the reservation may still be held for this host",
                                     "with the same file system: give it a fixed identity",
                                     "is of the same NQN",
                                     "is smaller than its file system",
                                     "holds no file system",
                                     "partition table",
                                     "can't be told",
                                     "did not come back",
                                     "vanished",
                                     "can't be read",
                                     "starting",
                                     "connecting to ",
                                     "reading the discovery log of ",
                                     "unreachable: ",
                                     "is not offered to this host NQN",
                                     "is not there (yet)",
                                     "connecting subsystem ",
                                     "connect nqn",
                                     "opening /dev/",
                                     "looking up ",
                                     "belongs to ",
                                     "no path to the target is live",
                                     "that it stays down is not recorded yet",
                                     "that it is to be up is not recorded yet",
                                     "that it is down is not recorded yet",
                                     "the link is back: reads are verified",
                                     "does not answer, although its link is up",
                                     "still waits in the kernel",
                                     "no answer within ",
                                     "reading the reservation of ",
                                     "waiting until the other host's last writes have ended",
                                     "it was written meanwhile: remounting",
                                     "another program changed its mount, which is checked",
                                     "and unwritten data waits for it",
                                     "being published, or made writable again",
                                     "published: read-only until ",
                                     "mounting /dev/",
                                     "after mounting, ",
                                     "recording the volume's file system: ",
                                     "writing to /mnt/",
                                     "its unwritten data is being written to ",
                                     "it is being unmounted",
                                     "unmounting ",
                                     "the dead mount stays: ",
                                     "is gone: the mount on it is dead",
                                     "the target shows another disk at its new address",
                                     "returns only errors, or went read-only after an error",
                                     "files of the mount that was lost were still open",
                                     "No space left on device",
                                     "which is no address of target ",
                                     "is there now, not ",
                                     "the device under ",
                                     "whether volume ",
                                     "itself holds files, on the disk below",
                                     "written since it was mounted here",
                                     "programs can write to ",
                                     "recording the guard of ",
                                     "opening the mount point ",
                                     "is not offered at ",
                                     "setting the timers of ",
                                     "is not mounted there",
                                     "it can't be reached below",
                                     "and that is not done yet",
                                     "stopping all writes to ",
                                     "reported as done, but is not there"});

}  // namespace

std::string false_oracle_of(const std::string& sentence, const Facts& facts) {
  if (has(sentence, "giving it back failed: ")) return "";  // tells of an attempt
  for (const Kind& kind : kKinds) {
    if (!has(sentence, kind.words)) continue;
    return kind.is_true(sentence, facts) ? "" : std::string(kind.oracle);
  }
  return "";
}

bool is_judged(const std::string& sentence) {
  return std::ranges::any_of(kKinds, [&](const Kind& kind) { return has(sentence, kind.words); });
}

bool is_known(const std::string& sentence) {
  const auto is_in = [&](std::string_view words) { return has(sentence, words); };
  return is_judged(sentence) || std::ranges::any_of(kOfAttempts, is_in);
}

}  // namespace spark::histories
