#include "fleet/backlog/backlog.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <utility>

#include "staging/copy/copy_files.hpp"

namespace spark::fleet {
namespace {

// Enough units to choose from. The hosts of a fleet are at about the same position, so each owns units that
// the others need.
constexpr std::size_t kUnitsAhead = 2048, kMostOpen = 96;
constexpr std::size_t kFewestOpenForReaders = 128, kMostOpenForReaders = 4096;

// Each takes two descriptors, and what else is open needs some.
std::size_t most_open() {
  struct rlimit files {};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return kFewestOpenForReaders;
  return std::clamp<std::size_t>(files.rlim_cur / 8, kFewestOpenForReaders, kMostOpenForReaders);
}

bool is_in(const std::vector<staging::Entry*>& sorted, const staging::Entry& entry) {
  return std::ranges::binary_search(sorted, entry.path.view(), {},
                                    [](const staging::Entry* one) { return one->path.view(); });
}

}  // namespace

// Sparse files are left to the copy engine, which preserves their holes.
Backlog::Backlog(staging::ExchangeJob& job, const Layout& layout,
                 const std::vector<staging::Entry*>& entry_of)
    : layout_(layout),
      entry_of_(entry_of),
      viewer_(job.context.viewer),
      left_(job.context, job.io,
            [&job](staging::Entry& entry) {
              return staging::work_for(job.context, entry, job.resumed, job.entries);
            }),
      most_open_(most_open()),
      needs_small_(layout.small_files(), 0) {
  for (std::uint64_t i = 0; i < layout.small_files(); ++i)
    needs_small_[i] = is_in(job.small, *entry_of[layout.small(i)]) ? 1 : 0;
  job.small.clear();
  const auto is_taken = [](const staging::Entry* entry) {
    return !Layout::is_packed(entry->size) && entry->allocated >= entry->size;
  };
  for (std::uint64_t file = layout.files(); file-- > 0;) {
    const staging::Entry* entry = entry_of[file];
    if (is_taken(entry) && is_in(job.large, *entry)) large_.push_back(file);
  }
  for (staging::Entry* entry : job.large)
    if (!is_taken(entry)) left_.add(entry);
  job.large.clear();
  for (std::uint64_t unit = layout.units(); unit-- > layout.pieces();) {
    const Pack& pack = layout.pack(unit);
    for (std::uint64_t i = pack.first; i < pack.first + pack.count; ++i) {
      if (!needs(i)) continue;
      packs_.push_back(unit);
      break;
    }
  }
}

void Backlog::spread(NodeId self, std::span<const NodeId> others) {
  struct Ranked {
    std::size_t rank;
    std::uint64_t order, file;
  };
  const auto end = large_.end() - static_cast<std::ptrdiff_t>(first_.size());
  std::vector<Ranked> ranked;
  for (auto file = large_.begin(); file != end; ++file)
    ranked.push_back({rank_of(self, *file, others), weight(self, *file), *file});
  std::ranges::sort(ranked, [](const Ranked& a, const Ranked& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.order < b.order;
  });
  std::ranges::transform(ranked, large_.begin(), &Ranked::file);
}

std::optional<std::uint64_t> Backlog::take_file(const Busy& busy, bool for_readers) {
  if (opening_ || large_.empty()) return std::nullopt;
  const bool is_first = first_.erase(large_.back()) > 0;
  const bool may_begin =
      is_first ? busy.files < most_open_ : !for_readers && busy.units < kUnitsAhead && busy.files < kMostOpen;
  if (is_first && !may_begin) first_.insert(large_.back());
  if (!may_begin) return std::nullopt;
  opening_ = large_.back();
  large_.pop_back();
  return opening_;
}

std::vector<std::uint64_t> Backlog::take_packs(const Busy& busy) {
  if (busy.units >= kUnitsAhead) return {};
  const auto count = static_cast<std::ptrdiff_t>(std::min(packs_.size(), kUnitsAhead));
  std::vector<std::uint64_t> taken(packs_.end() - count, packs_.end());
  packs_.erase(packs_.end() - count, packs_.end());
  return taken;
}

void Backlog::got(std::uint64_t small) {
  needs_small_[small] = 0;
  wanted_small_.erase(small);
}

std::size_t Backlog::put_wanted_first(std::span<std::uint64_t> small) const {
  const auto is_wanted = [this](std::uint64_t one) { return wanted_small_.contains(one); };
  const auto others = std::stable_partition(small.begin(), small.end(), is_wanted);
  return static_cast<std::size_t>(others - small.begin());
}

bool Backlog::bring_forward(const WantedUnit& wanted, bool is_here) {
  if (layout_.is_pack(wanted.unit)) {
    const std::uint64_t small = layout_.small_of(wanted.file);
    left_.want(entry_of_[wanted.file], wanted.view_unit);
    if (is_here || !needs(small)) return false;
    wanted_small_.insert(small);
    return true;
  }
  const auto waiting = std::ranges::find(large_, wanted.file);
  if (waiting != large_.end()) {
    std::rotate(waiting, waiting + 1, large_.end());
    first_.insert(wanted.file);
    return true;
  }
  if (opening_ == wanted.file) return true;
  left_.want(entry_of_[wanted.file], wanted.view_unit);
  return false;
}

bool Backlog::take_pack(std::uint64_t unit) {
  return std::erase(packs_, unit) > 0;
}

}  // namespace spark::fleet
