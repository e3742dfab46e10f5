#include "staging/cache/room.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <thread>

#include "base/text.hpp"
#include "staging/cache/eviction.hpp"
#include "staging/cache/inventory.hpp"
#include "staging/cache/room_limit.hpp"
#include "staging/cache/space_lock.hpp"
#include "staging/cache/superseded.hpp"
#include "staging/copy/partial/partial_area.hpp"
#include "staging/files/space.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kRoomPoll{100}, kLongestPause{5'000};
constexpr std::chrono::seconds kCountAgain{10};  // to see space that other copies have used meanwhile

class SpaceReservation {
 public:
  SpaceReservation(CacheStore& store, const CacheConfig& config, const RoomRequest& request,
                   const StopFlag& stop)
      : store_(store), config_(config), request_(request), stop_(stop) {}

  Result<Room> make() {
    const auto patience = request_.is_prefetch ? std::chrono::milliseconds(0) : request_.timings.obstacle;
    const auto give_up = Clock::now() + patience;
    for (std::chrono::milliseconds pause = kRoomPoll;; pause = std::min(pause * 2, kLongestPause)) {
      auto made = try_to_make();
      if (!made) return made.take_error();
      if (*made) return std::move(room_);
      if (Clock::now() >= give_up) return too_full();
      request_.say("making room: " + holders_in_words(inventory_));
      if (auto waited = wait(pause); !waited) return waited.take_error();
    }
  }

 private:
  CacheStore& store_;
  const CacheConfig& config_;
  const RoomRequest& request_;
  const StopFlag& stop_;
  Inventory inventory_;
  Space space_;
  Footprint used_, unwritten_;  // unwritten: reserved by others, and not taken from the file system yet
  Room room_;
  // Keys of victims that could not be deleted, with the reason: where the catalog can't be written, it does
  // not say so either.
  std::map<std::string, std::string> failed_;
  int refused_ = 0;  // errno of a full drive that took no change for an eviction

  // False: there is a temporary obstacle. The lock on the space is not held while waiting.
  Result<bool> try_to_make() {
    const auto lock = lock_space(store_.folder(), request_.say, stop_);
    if (!lock) return lock.take_error();
    auto dropped = store_.catalog().drop_reservation(request_.dataset);  // of an earlier attempt
    if (!dropped) return dropped.take_error();
    if (auto looked = look(); !looked) return looked.take_error();
    if (auto possible = check_fits(request_.whole, limit()); !possible) return possible.take_error();
    const Inventory before = inventory_;
    const auto goes_on = [this]() -> Result<bool> {
      if (auto looked = look(); !looked) return looked.take_error();
      return !shortage().is_none();
    };
    auto deleted = shortage().is_none() ? Result<>()
                                        : delete_superseded(store_, before, request_.in_use,
                                                            folder_name(request_.dataset), stop_, goes_on);
    if (!deleted) return deleted.take_error();
    while (!shortage().is_none()) {
      const auto victims = choose(Among::Unneeded);
      if (!victims && choose(Among::NeededForMinutes)) return false;
      if (!victims) return end_prefetches();
      auto gone = evict_if_worth_it(*victims);
      if (!gone) return gone.take_error();
    }
    const Footprint added = this->added();
    auto reserved = store_.catalog().reserve(
        {request_.dataset, added.bytes, added.inodes, request_.answers_for, request_.task});
    if (!reserved) return reserved.take_error();
    request_.say("");
    return true;
  }

  Result<> wait(std::chrono::milliseconds pause) const {
    for (const auto end = Clock::now() + pause; Clock::now() < end && !stop_;)
      std::this_thread::sleep_for(kRoomPoll);
    if (stop_) return fail(Errc::Cancelled, "making room was interrupted");
    return {};
  }

  Result<> look() {
    // Staging the dataset does not count as use of its older copy.
    std::vector<InUse> in_use = request_.in_use;
    std::erase_if(in_use,
                  [&](const InUse& one) { return one.dataset == request_.dataset && one.generation == 0; });
    const auto prefetched = request_.is_prefetch ? Prefetched::Stays : Prefetched::MakesWay;
    auto inventory = take_inventory(store_, in_use, prefetched);
    if (!inventory) return inventory.take_error();
    const auto space = space_of(store_.folder().path());
    if (!space) return space.take_error();
    inventory_ = std::move(*inventory);
    space_ = *space;
    used_ = unwritten_ = {};
    for (const auto& [key, why] : failed_) {
      if (const auto left = inventory_.find(key); left != inventory_.end()) left->second.needed_by = why;
    }
    if (const auto own = inventory_.find(folder_name(request_.dataset)); own != inventory_.end()) {
      Share& share = own->second;
      share.partial = {};  // part of the requested space
      const bool is_damaged = candidate_for(share, store_.now()).is_useless;
      if (share.needed_by.empty() && !is_damaged)
        share.needed_by = "its older copy, until the new one is ready";
    }
    for (auto& [key, share] : inventory_) {
      used_.bytes += share.taken().bytes;
      used_.inodes += share.taken().inodes;
      unwritten_.bytes += over(share.reserved.bytes, share.partial.bytes);
      unwritten_.inodes += over(share.reserved.inodes, share.partial.inodes);
    }
    return {};
  }

  Footprint limit() const { return room_limit(config_, space_, request_.keep_free); }

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
    return {over(used_.bytes + added().bytes, most(config_.capacity)),
            std::max(over(used_.inodes + added().inodes, most(config_.capacity_inodes)),
                     over(inodes_to_come, space_.inodes_free)),
            over(to_come, space_.free + request_.need.stale)};
  }

  // Each value includes those before it.
  enum class Among { Unneeded, NeededForMinutes, BeingPrefetched };

  bool is_among(const Share& share, Among among) const {
    if (share.needed_by.empty()) return true;
    if (among >= Among::NeededForMinutes && share.need_passes) return true;
    return among == Among::BeingPrefetched && share.in_progress() &&
           std::ranges::find(request_.prefetching, share.dataset) != request_.prefetching.end();
  }

  // Keys of datasets that would free enough space.
  std::optional<std::vector<std::string>> choose(Among among) const {
    std::vector<Candidate> candidates;
    std::vector<std::string> keys;
    for (const auto& [key, share] : inventory_) {
      if (!is_among(share, among)) continue;
      candidates.push_back(candidate_for(share, store_.now()));
      keys.push_back(key);
    }
    const auto victims = choose_victims(candidates, shortage());
    if (!victims) return std::nullopt;
    std::vector<std::string> chosen;
    for (const std::size_t victim : *victims) chosen.push_back(keys[victim]);
    return chosen;
  }

  // True: the requester has to end these prefetches.
  Result<bool> end_prefetches() {
    const auto victims = choose(Among::BeingPrefetched);
    if (!victims) return too_full();
    for (const std::string& key : *victims) {
      const Share& share = inventory_.at(key);
      if (share.in_progress()) room_.blocked_by.push_back(share.dataset);
    }
    return true;
  }

  using Areas = std::map<std::string, PartialArea>;  // by folder name

  // Evicts all of them or none. None if new information changes the choice.
  Result<> evict_if_worth_it(const std::vector<std::string>& victims) {
    bool is_known = true;
    for (const std::string& key : victims) {
      Share& share = inventory_.at(key);
      if (share.freed) continue;
      is_known = false;
      request_.say("checking the space that evicting " + printable(share.dataset) + " would free");
      if (auto looked = look_before_evicting(store_, share, stop_); !looked) return looked;
    }
    if (!is_known) return {};
    Areas areas;
    for (const std::string& key : victims) {
      if (key == folder_name(request_.dataset)) continue;  // the caller has that lock
      auto area = PartialArea::try_open(store_.folder().partials() / key);
      if (area) {
        areas.emplace(key, std::move(*area));
        continue;
      }
      Share& share = inventory_.at(key);
      share.need_passes = area.error().kind == Errc::Unavailable;
      share.needed_by = share.need_passes ? "another process works on it" : area.error().what;
      if (area.error().kind == Errc::NoSpace) refused_ = area.error().number;
      return {};
    }
    return evict(victims, areas);
  }

  Result<> evict(const std::vector<std::string>& victims, Areas& areas) {
    std::vector<GenerationRow> rows;
    for (const std::string& key : victims) {
      const Share& share = inventory_.at(key);
      rows.insert(rows.end(), share.rows.begin(), share.rows.end());
    }
    auto marked = store_.mark_evicted(rows);
    if (!marked && marked.error().kind == Errc::Refused) return look();  // leased just now
    if (!marked) return marked;
    std::vector<std::string> names;
    for (const std::string& key : victims) {
      const Share& share = inventory_.at(key);
      auto gone = store_.delete_marked(share.rows);
      if (const auto area = areas.find(key); area != areas.end()) {
        auto cleared = area->second.clear();
        if (cleared && gone) cleared = store_.damage().drop(share.dataset);
        auto noted = cleared ? Result<>() : store_.catalog().set_trouble(key, cleared.error().message());
        if (!noted) return noted;
        if (!cleared) gone = std::move(cleared);
      }
      // Refused: a program has just opened it, which the next look will see.
      if (!gone && gone.error().kind != Errc::Refused) failed_[key] = gone.error().what;
      if (!gone && gone.error().kind == Errc::NoSpace) refused_ = gone.error().number;
      if (!gone) continue;
      names.push_back(printable(share.dataset));
      room_.evicted.push_back({share.dataset, share.published.bytes + share.partial.bytes});
    }
    if (auto looked = look(); !looked) return looked;
    // After a failure, other victims are chosen.
    return names.size() == victims.size() ? wait_until_free(join(names, ", ")) : Result<>();
  }

  // File systems free the space of deleted files with some delay.
  Result<> wait_until_free(const std::string& deleted) {
    const auto give_up = Clock::now() + request_.timings.freeing;
    for (auto count_again = Clock::now() + kCountAgain; !shortage().is_none();) {
      if (Clock::now() >= give_up) {
        return fail(Errc::NoSpace,
                    deleted + " was evicted, and " + format_bytes(shortage().disk_bytes) +
                        " of its space are not free yet",
                    "find the program that has its files open (`lsof +L1`), then stage again");
      }
      request_.say("waiting for the space of " + deleted + " to become free");
      if (auto waited = wait(kRoomPoll); !waited) return waited;
      if (Clock::now() >= count_again) {
        if (auto looked = look(); !looked) return looked;
        count_again = Clock::now() + kCountAgain;
      }
      const auto space = space_of(store_.folder().path());
      if (!space) return space.take_error();
      space_ = *space;
    }
    return {};
  }

  tl::unexpected<Error> too_full() const {
    const Shortage missing = shortage();
    std::string what;
    if (missing.bytes == 0 && missing.disk_bytes == 0) {
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
    return fail(Error{Errc::NoSpace, what,
                      held.empty() ? "delete other files on that drive, or exclude a part of the dataset"
                                   : "wait until one is free or release its lease (`spark-stage ls`)",
                      refused_});
  }
};

}  // namespace

Result<Room> make_room(CacheStore& store, const CacheConfig& config, const RoomRequest& request,
                       const StopFlag& stop) {
  return SpaceReservation(store, config, request, stop).make();
}

}  // namespace spark::staging
