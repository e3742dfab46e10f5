#include "staging/cache_store.hpp"

#include <unistd.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "staging/names.hpp"
#include "staging/partial_area.hpp"
#include "staging/space.hpp"
#include "staging/tree.hpp"

namespace spark::staging {

Result<> CacheStore::check_identity() {
  auto known = catalog_->cache_id();
  if (!known) return tl::unexpected<Error>(std::move(known.error()));
  auto found = folder_.id();
  if (!found) return tl::unexpected<Error>(std::move(found.error()));
  if (known->empty()) {
    if (auto made = folder_.make(); !made) return made;
    if (found->empty()) found = folder_.make_id();
    if (!found) return tl::unexpected<Error>(std::move(found.error()));
    return catalog_->set_cache_id(*found);
  }
  if (*known == *found) return {};
  const std::string shown = printable(folder_.path().native());
  return fail(Errc::Unavailable,
              "opening the cache " + shown + ": it is not the folder that the catalog knows" +
                  (found->empty() ? ", it has nothing of a cache" : ""),
              "mount the cache's drive there; for a new cache on purpose, move catalog.sqlite away first");
}

Result<> CacheStore::recover() {
  const auto rows = catalog_->generations();
  if (!rows) return tl::unexpected<Error>(rows.error());
  std::set<std::string> keys;
  for (const std::string& key : folder_.keys()) keys.insert(key);
  for (const GenerationRow& row : *rows) keys.insert(folder_name(row.dataset));
  for (const std::string& key : keys) {
    auto area = PartialArea::try_open(folder_.partials() / key);
    if (!area && area.error().kind == Errc::Unavailable) continue;  // somebody is at work there
    if (!area) return tl::unexpected<Error>(std::move(area.error()));
    if (auto recovered = recover_key(key, *area); !recovered) return recovered;
  }
  return folder_.empty_trash();
}

Result<> CacheStore::recover_key(const std::string& key, PartialArea& area) {
  const auto rows = catalog_->generations();
  if (!rows) return tl::unexpected<Error>(rows.error());

  std::vector<std::uint64_t> found = folder_.generations(key);
  std::string dataset;
  for (const GenerationRow& row : *rows) {
    if (folder_name(row.dataset) != key) continue;
    const bool is_there = std::erase(found, row.generation) > 0;
    if (row.state == GenerationState::Evicting || !is_there) {
      if (auto gone = finish_eviction(row); !gone) return gone;
    } else {
      dataset = row.dataset;
    }
  }
  for (const std::uint64_t generation : found) {
    const Destination place{folder_.data() / key, std::to_string(generation)};
    if (auto completed = recover_publishing(place, area); !completed) return completed;
    if (auto entered = enter_unknown(key, generation); !entered) return entered;
  }
  return dataset.empty() ? Result<>() : update_link(dataset);
}

// What was published but not entered. Without a manifest of its own it is not ours to judge: it stays,
// unused.
Result<> CacheStore::enter_unknown(const std::string& key, std::uint64_t generation) {
  const Destination place{folder_.data() / key, std::to_string(generation)};
  auto manifest = ManifestReader::open(place.manifest());
  const auto identity = identity_of(place.path());
  if (!manifest || !identity || manifest->header().root != *identity ||
      folder_name(manifest->header().dataset) != key)
    return {};
  const auto summary = summary_of(*manifest);
  if (!summary) return {};
  return enter(manifest->header(), generation, *summary, 0);
}

Result<std::vector<GenerationRow>> CacheStore::ready_generations(const std::string& dataset) {
  auto rows = catalog_->generations();
  if (!rows) return rows;
  std::erase_if(*rows, [&](const GenerationRow& row) {
    return row.dataset != dataset || row.state != GenerationState::Ready;
  });
  return rows;
}

Result<> CacheStore::enter(const ManifestHeader& header, std::uint64_t generation, const Summary& summary,
                           double stage_seconds) {
  GenerationRow row;
  row.dataset = header.dataset;
  row.source_generation = header.source_generation;
  row.is_doubtful = header.is_doubtful;
  row.generation = generation;
  row.bytes = summary.bytes;
  row.allocated = summary.footprint.bytes;
  row.inodes = summary.footprint.inodes;
  row.files = summary.files;
  row.stage_seconds = stage_seconds;
  row.hash = summary.hash;
  row.staged_at = row.last_used = row.good_at = now();
  if (summary.good_at != 0)
    row.good_at = std::min(row.good_at, WallTime(std::chrono::seconds(summary.good_at)));
  if (auto put = catalog_->put(row); !put) return put;
  if (auto go_on = after(step_, "committed"); !go_on) return go_on;
  if (auto linked = update_link(row.dataset); !linked) return linked;
  return after(step_, "linked");
}

Result<> CacheStore::update_link(const std::string& dataset) {
  const auto ready = ready_generations(dataset);
  if (!ready) return tl::unexpected<Error>(ready.error());
  for (const GenerationRow& row : *ready) {
    if (row.is_sound()) return folder_.point_link(dataset, row.generation);
    if (auto dropped = folder_.drop_link(dataset, row.generation); !dropped) return dropped;
  }
  return {};
}

Result<> CacheStore::evict(const std::vector<GenerationRow>& rows) {
  if (auto marked = catalog_->begin_eviction(rows, now()); !marked) return marked;
  if (auto go_on = after(step_, "marked"); !go_on) return go_on;
  for (const GenerationRow& row : rows) {
    if (auto gone = finish_eviction(row); !gone) return gone;
  }
  return {};
}

Result<> CacheStore::finish_eviction(const GenerationRow& row) {
  if (auto dropped = folder_.drop_link(row.dataset, row.generation); !dropped) return dropped;
  if (auto go_on = after(step_, "unlinked"); !go_on) return go_on;
  if (auto moved = folder_.move_to_trash(row.dataset, row.generation); !moved) return moved;
  if (auto go_on = after(step_, "trashed"); !go_on) return go_on;
  if (auto removed = catalog_->remove(row.dataset, row.generation); !removed) return removed;
  if (auto go_on = after(step_, "forgotten"); !go_on) return go_on;
  return folder_.empty_trash();
}

}  // namespace spark::staging
