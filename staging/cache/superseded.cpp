#include "staging/cache/superseded.hpp"

#include <algorithm>

#include "staging/copy/partial/partial_area.hpp"

namespace spark::staging {
namespace {

// Older than the newest sound generation. Without a sound one the older ones are all that is left.
std::vector<GenerationRow> superseded_in(const Share& share) {
  const auto sound = std::ranges::find_if(share.rows, &GenerationRow::is_sound);
  if (sound == share.rows.end()) return {};
  // The oldest first: what it shares is counted for newer ones, so nothing has to be counted again.
  std::vector<GenerationRow> rows(share.rows.rbegin(), std::make_reverse_iterator(sound + 1));
  std::erase_if(rows, [](const GenerationRow& row) { return row.state != GenerationState::Ready; });
  return rows;
}

bool is_in_use(const GenerationRow& row, const std::vector<InUse>& in_use) {
  return std::ranges::any_of(in_use, [&](const InUse& one) {
    return one.dataset == row.dataset && one.generation == row.generation;
  });
}

// False: it stays, because it is used or can't be deleted. The caller has its dataset's lock.
Result<bool> delete_one(CacheStore& store, const GenerationRow& row, const StopFlag& stop) {
  const auto looked = look_before_deleting(store, {row}, stop);
  if (!looked && looked.error().kind == Errc::Cancelled) return looked.take_error();
  if (!looked || !looked->obstacle.empty()) return false;
  auto marked = store.mark_evicted({row});
  if (!marked && marked.error().kind == Errc::Refused) return false;  // leased
  if (!marked) return marked.take_error();
  return store.delete_marked({row}).has_value();  // a failure is recorded as the dataset's trouble
}

Result<bool> lock_and_delete(CacheStore& store, const std::string& key, const GenerationRow& row,
                             const StopFlag& stop) {
  const auto area = PartialArea::try_open(store.folder().partials() / key);
  if (!area) return false;  // another process works on it
  return delete_one(store, row, stop);
}

}  // namespace

Result<> delete_superseded(CacheStore& store, const Inventory& inventory, const std::vector<InUse>& in_use,
                           const std::string& own, const StopFlag& stop,
                           const std::function<Result<bool>()>& goes_on) {
  for (const auto& [key, share] : inventory) {
    for (const GenerationRow& row : superseded_in(share)) {
      if (is_in_use(row, in_use)) continue;
      const auto deleted = key == own ? delete_one(store, row, stop) : lock_and_delete(store, key, row, stop);
      if (!deleted) return deleted.take_error();
      const auto more = *deleted ? goes_on() : Result<bool>(true);
      if (!more) return more.take_error();
      if (!*more) return {};
    }
  }
  return {};
}

}  // namespace spark::staging
