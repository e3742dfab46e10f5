#include "fleet/adopted/adoptions.hpp"

#include <algorithm>

namespace spark::fleet {
namespace {

std::chrono::nanoseconds pause_after(const Adoption& adoption) {
  const bool rests_soon = adoption.state() == AdoptionState::Changing;
  const auto shortest = rests_soon ? Adoption::kRest : Adoptions::kBetweenLooks;
  const int share =
      rests_soon ? std::min(adoption.changes(), Adoptions::kShareForWalks) : Adoptions::kShareForWalks;
  return std::clamp<std::chrono::nanoseconds>(adoption.cost() * share, shortest, Adoptions::kLongestPause);
}

}  // namespace

Adoptions::Adoptions(std::vector<AdoptedFolder> folders, const std::filesystem::path& state_dir,
                     const Clock& clock, const Adoption::Unmounted& unmounted)
    : clock_(clock), next_(folders.size(), clock.steady()) {
  for (AdoptedFolder& folder : folders) all_.emplace_back(std::move(folder), state_dir, clock, unmounted);
}

bool Adoptions::is_due(std::size_t index, SteadyTime now) const {
  const auto& reading = all_[index].reading();
  return next_[index] <= now || (reading && reading->has_ended);
}

void Adoptions::look(const std::function<void()>& on_look, const StopFlag& stop) {
  for (std::size_t i = 0; i < all_.size() && !stop; ++i) {
    if (!is_due(i, clock_.steady())) continue;
    all_[i].look(stop);
    next_[i] = clock_.steady() + pause_after(all_[i]);
    read_next();
    if (on_look) on_look();
  }
  read_next();
}

void Adoptions::read_next() {
  read_next(of_small_, true);
  read_next(of_large_, false);
}

// The folder that has been at rest for longest: one that changes again and again does not keep the others
// from being read.
void Adoptions::read_next(FolderReader& reader, bool is_small) {
  if (!reader.is_free()) return;
  const Adoption* next = nullptr;
  for (const Adoption& one : all_) {
    const bool waits = one.reading() && !one.reading()->has_begun;
    if (!waits || (one.reading()->bytes < kSmall) != is_small) continue;
    if (next == nullptr || one.changed_at() < next->changed_at()) next = &one;
  }
  if (next != nullptr) reader.begin(next->reading());
}

}  // namespace spark::fleet
