#include "staging/room.hpp"

#include <fcntl.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <limits>
#include <set>
#include <thread>

#include "base/text.hpp"
#include "staging/eviction.hpp"
#include "staging/inventory.hpp"
#include "staging/names.hpp"
#include "staging/partial_area.hpp"

namespace spark::staging {
namespace {

constexpr std::chrono::milliseconds kRoomPoll{100};
// File systems give the space of deleted files back with some delay.
constexpr int kPollsAfterEviction = 20;

std::uint64_t over(std::uint64_t a, std::uint64_t b) {
  return a > b ? a - b : 0;
}

// Held by whoever reserves or evicts to reserve.
Result<UniqueFd> lock_space(const CacheFolder& folder, const StopFlag& stop) {
  const std::string shown = printable(folder.partials().native());
  UniqueFd fd(::open(folder.partials().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "opening folder " + shown);
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail_errno(errno, "locking folder " + shown);
    if (stop) return fail(Errc::Cancelled, "waiting for another dataset to be given room: interrupted");
    std::this_thread::sleep_for(kRoomPoll);
  }
  return fd;
}

class Room {
 public:
  Room(CacheStore& store, const CacheConfig& config, const RoomRequest& request, const StopFlag& stop)
      : store_(store), config_(config), request_(request), stop_(stop) {}

  Result<std::vector<Evicted>> make() {
    const auto lock = lock_space(store_.folder(), stop_);
    if (!lock) return tl::unexpected<Error>(lock.error());
    auto dropped = store_.catalog().drop_reservation(request_.dataset);  // of an attempt before
    if (!dropped) return tl::unexpected<Error>(std::move(dropped.error()));
    std::vector<Evicted> evicted;
    for (int polls = 0;;) {
      if (stop_) return fail(Errc::Cancelled, "making room was interrupted");
      if (auto looked = look(); !looked) return tl::unexpected<Error>(std::move(looked.error()));
      if (auto possible = check_possible(); !possible)
        return tl::unexpected<Error>(std::move(possible.error()));
      const Shortage shortage = this->shortage();
      if (shortage.is_none()) break;
      if (polls > 0) {
        --polls;
        std::this_thread::sleep_for(kRoomPoll);
        continue;
      }
      const auto victims = choose(shortage);
      if (!victims) return too_full();
      auto gone = evict(*victims);
      if (!gone) return tl::unexpected<Error>(std::move(gone.error()));
      if (!gone->empty()) polls = kPollsAfterEviction;
      evicted.insert(evicted.end(), gone->begin(), gone->end());
    }
    const Footprint added = this->added();
    Reservation reservation{request_.dataset, added.bytes, added.inodes, request_.answers_for};
    if (auto reserved = store_.catalog().reserve(reservation); !reserved)
      return tl::unexpected<Error>(std::move(reserved.error()));
    return evicted;
  }

 private:
  CacheStore& store_;
  const CacheConfig& config_;
  const RoomRequest& request_;
  const StopFlag& stop_;
  Inventory inventory_;
  Space space_;
  Footprint used_, unwritten_;  // unwritten: promised to others and not taken from the file system yet
  std::set<std::string> busy_;  // folders that other processes work on

  Result<> look() {
    // That it is being staged is no use of its older copy.
    std::vector<InUse> in_use = request_.in_use;
    std::erase_if(in_use,
                  [&](const InUse& one) { return one.dataset == request_.dataset && one.generation == 0; });
    auto inventory = take_inventory(store_, in_use);
    if (!inventory) return tl::unexpected<Error>(std::move(inventory.error()));
    const auto space = space_of(store_.folder().path());
    if (!space) return tl::unexpected<Error>(space.error());
    inventory_ = std::move(*inventory);
    space_ = *space;
    used_ = unwritten_ = {};
    if (const auto own = inventory_.find(folder_name(request_.dataset)); own != inventory_.end()) {
      Share& share = own->second;
      share.partial = {};  // part of what is asked for
      const bool is_damaged = candidate_for(share, store_.now()).is_useless;
      if (share.needed_by.empty() && !is_damaged)
        share.needed_by = "its older copy, until the new one is ready";
    }
    for (auto& [key, share] : inventory_) {
      if (share.needed_by.empty() && busy_.contains(key)) share.needed_by = "another process works on it";
      used_.bytes += share.taken().bytes;
      used_.inodes += share.taken().inodes;
      unwritten_.bytes += over(share.reserved.bytes, share.partial.bytes);
      unwritten_.inodes += over(share.reserved.inodes, share.partial.inodes);
    }
    return {};
  }

  // The most that all of the cache may ever hold.
  Footprint limit() const {
    const auto at_most = [](std::uint64_t configured, std::uint64_t there) {
      return configured > 0 ? std::min(configured, there) : there;
    };
    return {at_most(config_.capacity, over(space_.total, request_.keep_free)),
            at_most(config_.capacity_inodes, over(space_.inodes_total, config_.keep_free_inodes))};
  }

  Result<> check_possible() const {
    const Footprint most = limit();
    if (request_.whole.bytes > most.bytes) {
      return fail(Errc::NoSpace,
                  "it needs " + format_bytes(request_.whole.bytes) + " and the whole cache may hold " +
                      format_bytes(most.bytes),
                  "raise cache.capacity, exclude a part of it, or put the cache on a larger drive");
    }
    if (request_.whole.inodes > most.inodes) {
      return fail(Errc::NoSpace,
                  "it needs " + std::to_string(request_.whole.inodes) +
                      " inodes and the whole cache may have " + std::to_string(most.inodes),
                  "exclude a part of it, or put the cache on a file system with more inodes");
    }
    return {};
  }

  Footprint added() const {
    return {over(request_.whole.bytes, request_.shared.bytes),
            std::max<std::uint64_t>(1, over(request_.whole.inodes, request_.shared.inodes))};
  }

  Shortage shortage() const {
    const auto most = [](std::uint64_t configured) {
      return configured > 0 ? configured : std::numeric_limits<std::uint64_t>::max();
    };
    const Bytes to_come = request_.need.bytes + request_.keep_free + unwritten_.bytes;
    const std::uint64_t inodes_to_come = request_.need.inodes + config_.keep_free_inodes + unwritten_.inodes;
    return {std::max(over(used_.bytes + added().bytes, most(config_.capacity)),
                     over(to_come, space_.free + request_.need.stale)),
            std::max(over(used_.inodes + added().inodes, most(config_.capacity_inodes)),
                     over(inodes_to_come, space_.inodes_free))};
  }

  // Folders of datasets that nobody needs.
  std::optional<std::vector<std::string>> choose(const Shortage& shortage) const {
    std::vector<Candidate> candidates;
    std::vector<std::string> keys;
    for (const auto& [key, share] : inventory_) {
      if (!share.needed_by.empty()) continue;
      candidates.push_back(candidate_for(share, store_.now()));
      keys.push_back(key);
    }
    const auto victims = choose_victims(candidates, shortage);
    if (!victims) return std::nullopt;
    std::vector<std::string> chosen;
    for (const std::size_t victim : *victims) chosen.push_back(keys[victim]);
    return chosen;
  }

  // All of them or none: nothing if one was taken into use meanwhile.
  Result<std::vector<Evicted>> evict(const std::vector<std::string>& victims) {
    std::vector<PartialArea> areas;
    std::vector<GenerationRow> rows;
    std::vector<Evicted> evicted;
    for (const std::string& key : victims) {
      const Share& share = inventory_.at(key);
      rows.insert(rows.end(), share.rows.begin(), share.rows.end());
      evicted.push_back({share.dataset, share.published.bytes + share.partial.bytes});
      if (key == folder_name(request_.dataset)) continue;  // the caller has that lock
      auto area = PartialArea::try_open(store_.folder().partials() / key);
      if (!area && area.error().kind == Errc::Unavailable) {
        busy_.insert(key);
        return std::vector<Evicted>{};
      }
      if (!area) return tl::unexpected<Error>(std::move(area.error()));
      areas.push_back(std::move(*area));
    }
    auto gone = store_.evict(rows);
    if (!gone && gone.error().kind == Errc::Refused) return std::vector<Evicted>{};  // leased just now
    if (!gone) return tl::unexpected<Error>(std::move(gone.error()));
    for (PartialArea& area : areas) {
      if (auto cleared = area.clear(); !cleared) return tl::unexpected<Error>(std::move(cleared.error()));
    }
    return evicted;
  }

  tl::unexpected<Error> too_full() const {
    const Shortage missing = shortage();
    std::string what;
    if (missing.bytes == 0) {
      what = "it needs " + std::to_string(added().inodes) + " inodes, " + std::to_string(missing.inodes) +
             " more than there are for it in " + printable(store_.folder().path().native());
    } else {
      what = "it needs " + format_bytes(added().bytes) + " and the cache holds " + format_bytes(used_.bytes) +
             " of " + format_bytes(limit().bytes) + "; " + format_bytes(space_.free) + " are free in " +
             printable(store_.folder().path().native());
      if (request_.keep_free > 0) what += ", of which " + format_bytes(request_.keep_free) + " stay free";
    }
    const std::string held = holders_in_words(inventory_);
    if (!held.empty()) what += "; not to be evicted: " + held;
    return fail(Errc::NoSpace, what,
                held.empty() ? "delete what else is on that drive, or exclude a part of the dataset"
                             : "wait until one is free or release its lease (`spark-stage ls`)");
  }
};

}  // namespace

Result<std::vector<Evicted>> make_room(CacheStore& store, const CacheConfig& config,
                                       const RoomRequest& request, const StopFlag& stop) {
  return Room(store, config, request, stop).make();
}

Result<Usage> usage_of(CacheStore& store, const CacheConfig& config) {
  const auto inventory = take_inventory(store, {});
  if (!inventory) return tl::unexpected<Error>(inventory.error());
  const auto space = space_of(store.folder().path());
  if (!space) return tl::unexpected<Error>(space.error());
  Usage usage;
  Footprint unwritten;
  for (const auto& [key, share] : *inventory) {
    usage.used += share.taken().bytes;
    usage.used_inodes += share.taken().inodes;
    unwritten.bytes += over(share.reserved.bytes, share.partial.bytes);
    unwritten.inodes += over(share.reserved.inodes, share.partial.inodes);
  }
  usage.free = over(space->free, config.keep_free + unwritten.bytes);
  usage.capacity = config.capacity > 0 ? config.capacity : usage.used + usage.free;
  usage.free = std::min(usage.free, over(usage.capacity, usage.used));
  usage.free_inodes = over(space->inodes_free, config.keep_free_inodes + unwritten.inodes);
  if (config.capacity_inodes > 0) {
    usage.free_inodes = std::min(usage.free_inodes, over(config.capacity_inodes, usage.used_inodes));
  }
  return usage;
}

}  // namespace spark::staging
