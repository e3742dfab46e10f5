#include "fleet/serve/offers.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/threads.hpp"

namespace spark::fleet {
namespace {

// Sets with their file lists in memory, and the files of all of them unless one has more: 180 bytes each.
constexpr std::size_t kMostOffers = 8;
constexpr std::uint64_t kMostFiles = 10'000'000;
constexpr std::chrono::minutes kUnused{2};

}  // namespace

Result<std::shared_ptr<Offer>> LocalOffers::load(const std::string& set) {
  auto offer = published(set);
  if (!offer) offer = offer_of_board(boards_, set);
  if (offer) return offer;
  published_.look();  // it may have just been published
  return published(set);
}

SetState LocalOffers::state(const std::string& set, NodeId from) {
  const auto here = [&] {
    auto copy = published_.find(set);
    return copy && ::access(copy->path.c_str(), F_OK) == 0 ? copy : std::nullopt;  // it may be evicted since
  };
  auto copy = here();
  if (!copy) {
    const auto board = Board::open(boards_, set);
    if (board && (*board)->is_alive()) {
      if (from != 0) (*board)->note_member(from);  // before reading the state, see Server::answer()
      return state_of(**board);
    }
    published_.look();  // it may have just been published
    copy = here();
  }
  if (!copy) return {};
  return {.kind = SetState::Kind::Published, .unit_count = copy->units, .hash = copy->row.hash};
}

Result<std::shared_ptr<Offer>> LocalOffers::published(const std::string& set) const {
  const auto copy = published_.find(set);
  if (!copy) return fail(Errc::NotFound, "this host has not published that set");
  if (copy->adopted) return offer_of_folder(*copy->adopted, copy->manifest, copy->row.hash);
  return offer_of_copy(copy->path, copy->manifest, copy->row.hash);
}

bool LocalOffers::is_current(const std::string& set, const Offer& offer) const {
  if (!offer.is_current()) return false;
  const auto now = published_.find(set);
  return offer.copy().empty() ? !now : now && now->path == offer.copy();
}

std::shared_ptr<Offer> Offers::known(const std::string& set) {
  const std::scoped_lock lock(mutex_);
  const auto found = offers_.find(set);
  return found == offers_.end() ? nullptr : found->second.offer;
}

std::shared_ptr<Offer> Offers::find(const std::string& set, SteadyTime now) {
  auto before = known(set);
  const bool is_current = before && source_.is_current(set, *before);
  std::unique_lock lock(mutex_);
  if (const auto kept = offers_.find(set);
      kept != offers_.end() && (is_current || kept->second.offer != before)) {
    kept->second.used_at = now;
    return kept->second.offer;
  }
  if (is_current) return before;
  if (const auto running = loads_.find(set); running != loads_.end()) {
    const auto load = running->second;
    load_ended_.wait_for(lock, patience_, [&] { return load->has_ended; });
    return load->offer;
  }
  const auto load = std::make_shared<Load>();
  loads_.emplace(set, load);
  offers_.erase(set);
  lock.unlock();
  before.reset();  // frees the old list first
  // Without memory for the list this host does not have the set.
  auto loaded = no_throw([&] { return source_.load(set); });
  lock.lock();
  if (loaded) load->offer = std::move(*loaded);
  load->has_ended = true;
  loads_.erase(set);
  load_ended_.notify_all();
  if (load->offer) keep(set, load->offer, now);
  return load->offer;
}

SetState Offers::state(const std::string& set, NodeId from) {
  const auto offer = known(set);
  if (!offer || !source_.is_current(set, *offer)) return source_.state(set, from);
  if (from != 0) offer->note_member(from);
  return offer->state();
}

// `mutex_` is locked. Those used longest ago make room.
void Offers::keep(const std::string& set, const std::shared_ptr<Offer>& offer, SteadyTime now) {
  const auto files = [&] {
    std::uint64_t all = offer->files();
    for (const auto& [name, kept] : offers_) all += kept.offer->files();
    return all;
  };
  while (!offers_.empty() && (offers_.size() >= kMostOffers || files() > kMostFiles))
    offers_.erase(std::ranges::min_element(offers_, {}, [](const auto& one) { return one.second.used_at; }));
  offers_[set] = {offer, now};
}

void Offers::drop_unused(SteadyTime now) {
  decltype(offers_) all;
  {
    const std::scoped_lock lock(mutex_);
    all = offers_;
  }
  // A drive may let the check wait, and a long list takes a while to be freed: neither under the lock.
  for (const auto& [set, kept] : all) {
    if (now - kept.used_at < kUnused && source_.is_current(set, *kept.offer)) continue;
    const std::scoped_lock lock(mutex_);
    const auto there = offers_.find(set);
    const bool is_same = there != offers_.end() && there->second.offer == kept.offer;
    if (is_same && there->second.used_at == kept.used_at) offers_.erase(there);
  }
}

}  // namespace spark::fleet
