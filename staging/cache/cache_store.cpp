#include "staging/cache/cache_store.hpp"

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "staging/cache/folder/named_file.hpp"
#include "staging/cache/inventory.hpp"
#include "staging/copy/partial/partial_area.hpp"
#include "staging/copy/source_place.hpp"
#include "staging/files/space.hpp"
#include "staging/files/tree.hpp"
#include "staging/files/walk.hpp"
#include "staging/manifest/names.hpp"
#include "staging/models/model.hpp"

namespace spark::staging {

// Several processes may open a new cache at the same time: one of them names it.
Result<> CacheStore::check_identity(const std::filesystem::path& state_dir) {
  const auto known = catalog_->cache_id();
  if (!known) return known.take_error();
  if (!known->empty()) return tie(state_dir);
  return catalog_->exclusively([&] { return tie(state_dir); });
}

Result<> CacheStore::tie(const std::filesystem::path& state_dir) {
  auto known = catalog_->cache_id();
  if (!known) return known.take_error();
  auto found = folder_.id();
  if (!found) return found.take_error();
  const bool is_first = known->empty();
  if (!is_first && *known != *found) {
    const std::string shown = printable(folder_.path().native());
    return fail(
        Errc::Unavailable,
        "opening the cache " + shown + ": it is not the folder that the catalog " +
            printable((state_dir / "catalog.sqlite").native()) + " knows" +
            (found->empty() ? ", it has nothing of a cache" : ""),
        "mount the cache's drive there. If the drive was replaced or emptied: `sudo spark-stage cache "
        "reset`. To take the copies to another folder: `sudo spark-stage cache move PATH`");
  }
  if (auto made = folder_.make(); !made) return made;
  if (found->empty()) found = folder_.make_id();
  if (!found) return found.take_error();
  if (auto held = folder_.hold(*found); !held) return held;
  return is_first ? catalog_->set_cache_id(*found) : Result<>();
}

Result<> CacheStore::recover(const std::function<void()>& looked_over, bool compares) {
  const auto rows = catalog_->generations();
  if (!rows) return rows.take_error();
  const auto troubles = catalog_->troubles();
  if (!troubles) return troubles.take_error();
  const auto folders = folder_.keys();
  if (!folders) return folders.take_error();
  const auto trashed = folder_.keys_in_trash();
  if (!trashed) return trashed.take_error();
  std::set<std::string> keys(folders->begin(), folders->end());
  keys.insert(trashed->begin(), trashed->end());
  for (const std::string& key : *folders) static_cast<void>(close_to_others(folder_, key));
  for (const GenerationRow& row : *rows) keys.insert(folder_name(row.dataset));
  for (const auto& [key, what] : *troubles) keys.insert(key);
  for (const Trash trash : {Trash::Kept, Trash::Emptied}) {
    for (const std::string& key : keys) {
      const auto recovered = recover_in_turn(key, trash, compares && trash == Trash::Kept);
      if (recovered) continue;
      if (auto noted = catalog_->set_trouble(key, recovered.error().message()); !noted) return noted;
    }
    if (trash == Trash::Kept) looked_over();
  }
  return {};
}

Result<> CacheStore::recover_in_turn(const std::string& key, Trash trash, bool compares) {
  const auto needed = needs_recovery(key);
  if (!needed) return needed.take_error();
  const auto rows = compares ? rows_of(key) : std::vector<GenerationRow>();
  if (!rows) return rows.take_error();
  const auto others = rows_of_others(folder_, *rows);
  if (!*needed && others.empty()) return {};
  auto area = PartialArea::try_open(folder_.partials() / key);
  // Another process works on it.
  if (!area && area.error().kind == Errc::Unavailable && others.empty()) return {};
  if (!area) return area.take_error();
  for (const GenerationRow& row : rows_of_others(folder_, others)) {  // now that no other process works on it
    const auto entered = enter_unknown(key, row.generation);
    if (!entered) return entered.take_error();
    if (*entered) continue;
    if (auto dropped = folder_.drop_link(row.dataset, row.generation); !dropped) return dropped;
    if (auto removed = catalog_->remove(row.dataset, row.generation, Catalog::Holders::Stay); !removed)
      return removed;
  }
  return recover_key(key, *area, trash);
}

Result<std::vector<GenerationRow>> CacheStore::rows_of(const std::string& key) {
  auto rows = catalog_->generations();
  if (!rows) return rows;
  std::erase_if(*rows, [&](const auto& row) { return folder_name(row.dataset) != key; });
  if (auto known = damage_.add_to(*rows); !known) return known.take_error();
  return rows;
}

// False means that everything is consistent; then no lock is taken.
Result<bool> CacheStore::needs_recovery(const std::string& key) {
  const auto rows = rows_of(key);
  if (!rows) return rows.take_error();
  const auto troubles = catalog_->troubles();
  if (!troubles) return troubles.take_error();
  const auto found = folder_.generations(key);
  if (!found) return found.take_error();
  const auto trashed = folder_.in_trash(key);
  if (!trashed) return trashed.take_error();
  const bool is_known = std::ranges::all_of(*rows, [&](const GenerationRow& row) {
    return row.state == GenerationState::Ready && std::ranges::count(*found, row.generation) > 0;
  });
  if (!is_known || rows->size() != found->size() || !trashed->empty() || troubles->contains(key)) return true;
  const auto sound = std::ranges::find_if(*rows, &GenerationRow::is_sound);
  return !rows->empty() &&
         !folder_.has_link_to(rows->front().dataset, sound == rows->end() ? 0 : sound->generation);
}

Result<> CacheStore::recover_key(const std::string& key, PartialArea& area, Trash trash) {
  const auto rows = rows_of(key);
  if (!rows) return rows.take_error();
  auto found = folder_.generations(key);
  if (!found) return found.take_error();
  auto trashed = folder_.in_trash(key);
  if (!trashed) return trashed.take_error();

  std::string dataset;
  Result<> deleted;
  const auto note = [&](Result<> done) {
    const bool is_kept = !done && done.error().kind == Errc::Refused;  // as it was
    if (deleted && !is_kept) deleted = std::move(done);
  };
  std::vector<GenerationRow> evicted;
  for (const GenerationRow& row : *rows) {
    std::erase(*found, row.generation);
    std::erase(*trashed, row.generation);
    if (row.state == GenerationState::Evicting) {
      evicted.push_back(row);
      continue;
    }
    const auto there = folder_.has_generation(key, row.generation);
    if (!there) return there.take_error();
    if (*there) dataset = row.dataset;
    if (auto kept = *there ? Result<>() : forget(row); !kept) return kept;
  }
  if (auto aside = evicted.empty() ? Result<>() : put_aside(evicted); !aside) {
    if (aside.error().kind == Errc::Refused) dataset = evicted.front().dataset;
    evicted.clear();
    note(std::move(aside));
  }
  if (trash == Trash::Emptied)
    for (const GenerationRow& row : evicted) note(delete_aside(row));
  for (const std::uint64_t generation : *trashed) {
    if (trash == Trash::Emptied) note(folder_.delete_trashed(key, generation));
  }
  for (const std::uint64_t generation : *found) {
    const Destination place{folder_.data() / key, std::to_string(generation)};
    if (auto completed = recover_publishing(place, area); !completed) return completed;
    if (auto entered = enter_unknown(key, generation); !entered) return entered.take_error();
  }
  if (auto linked = dataset.empty() ? Result<>() : update_link(dataset); !linked) return linked;
  auto noted = catalog_->set_trouble(key, deleted ? "" : deleted.error().message());
  return noted || noted.error().kind == Errc::NoSpace ? Result<>() : std::move(noted);
}

// A generation that is published but not in the catalog. Without a manifest of its own it can't be
// identified: it stays, unused. Whether it was entered.
Result<bool> CacheStore::enter_unknown(const std::string& key, std::uint64_t generation) {
  const Destination place{folder_.data() / key, std::to_string(generation)};
  auto manifest = ManifestReader::open(place.manifest());
  if (!manifest && !is_answer(manifest.error())) return manifest.take_error();
  const auto identity = identity_of(place.path());
  if (!identity && !is_answer(identity.error())) return identity.take_error();
  if (!manifest || !identity || manifest->header().root != *identity ||
      folder_name(manifest->header().dataset) != key)
    return false;
  const auto summary = summary_of(*manifest, block_of(folder_.path()));
  if (!summary) return summary.take_error();
  const std::string& dataset = manifest->header().dataset;
  const auto rows = ready_generations(dataset);
  if (!rows) return rows.take_error();
  Origin origin;
  std::set<std::uint64_t> all{generation};
  for (const GenerationRow& row : *rows) all.insert(row.generation);
  if (all.size() > 1)
    if (auto each = count_each(folder_, dataset, all)) origin.allocated = std::move(*each);
  auto entered = enter(manifest->header(), generation, *summary, origin);
  return entered ? Result<bool>(true) : entered.take_error();
}

Result<std::vector<GenerationRow>> CacheStore::generations() {
  auto rows = catalog_->generations();
  if (rows) static_cast<void>(damage_.add_to(*rows));  // without an answer they count as suspect
  return rows;
}

Result<std::vector<GenerationRow>> CacheStore::ready_generations(const std::string& dataset) {
  auto rows = catalog_->generations();
  if (!rows) return rows;
  std::erase_if(*rows, [&](const GenerationRow& row) {
    return row.dataset != dataset || row.state != GenerationState::Ready;
  });
  if (auto known = damage_.add_to(*rows); !known) return known.take_error();
  return rows;
}

Result<std::uint64_t> unused_generation(CacheStore& store, const std::string& dataset) {
  for (;;) {
    auto generation = store.catalog().next_generation(dataset);
    if (!generation) return generation;
    const auto there = store.folder().has_generation(folder_name(dataset), *generation);
    if (!there) return there.take_error();
    if (!*there) return generation;
  }
}

Result<> CacheStore::enter(const ManifestHeader& header, std::uint64_t generation, const Summary& summary,
                           const Origin& origin) {
  GenerationRow row;
  row.dataset = header.dataset;
  row.source_generation = header.source_generation;
  row.definition = header.definition;
  if (const auto model = parse_model_record(header.model)) row.model = summary_text(*model);
  row.is_doubtful = header.is_doubtful;
  row.generation = generation;
  row.bytes = summary.bytes;
  row.allocated = summary.footprint.bytes;
  row.inodes = summary.footprint.inodes;
  row.files = summary.files;
  row.stage_seconds = origin.stage_seconds;
  row.from = origin.from;
  row.hash = summary.hash;
  row.staged_at = row.last_used = row.good_at = now();
  if (summary.good_at != 0)
    row.good_at = std::min(row.good_at, WallTime(std::chrono::seconds(summary.good_at)));
  const Result<EntryType> most =
      summary.files > 0 ? EntryType::File : most_in(folder_.place(row.dataset, generation).manifest());
  if (!most) return most.take_error();
  // One transaction: on a full drive, shared files would stay counted twice.
  const auto put_all = [&]() -> Result<> {
    auto put = catalog_->put(row, {header.source, header.file_system, *most != EntryType::Folder});
    for (const auto& [one, bytes] : origin.allocated)
      if (put) put = catalog_->set_allocated(row.dataset, one, bytes);
    return put ? catalog_->drop_reservation(row.dataset) : std::move(put);
  };
  if (auto put = catalog_->exclusively(put_all); !put) return put;
  if (auto go_on = after(step_, "committed"); !go_on) return go_on;
  if (auto linked = update_link(row.dataset); !linked) return linked;
  return after(step_, "linked");
}

Result<> CacheStore::update_link(const std::string& dataset) {
  const auto ready = ready_generations(dataset);
  if (!ready) return ready.take_error();
  for (const GenerationRow& row : *ready) {
    if (row.is_sound()) {
      name_file(folder_, dataset, row.generation);
      return folder_.point_link(dataset, row.generation);
    }
    if (auto dropped = folder_.drop_link(dataset, row.generation); !dropped) return dropped;
  }
  return {};
}

Result<> CacheStore::note_verified(const GenerationRow& row, const std::string& damage, const Damage& known) {
  bool is_changed = false;
  auto noted = damage_.change(row.dataset, [&](Damage& now) {
    if (damage.empty()) {
      // What was found meanwhile may be of files that were read before.
      if (now.revision == 0 || now.damaged != known.damaged) return false;
      now.found.erase(row.generation);
      return is_changed = now.sound.insert(row.generation).second;
    }
    now.sound.clear();
    now.found[row.generation] = damage;
    now.damaged = now.revision + 1;
    return is_changed = true;
  });
  auto scrubbed = catalog_->set_scrubbed(row.dataset, row.generation, now());
  // With a full state folder the result counts all the same; it only looks older.
  if (!scrubbed && scrubbed.error().kind == Errc::NoSpace) scrubbed = {};
  // Usually nothing has changed, and a staging may be moving the link to its copy.
  auto linked = is_changed ? update_link(row.dataset) : Result<>();
  if (!noted) return noted;
  return scrubbed ? std::move(linked) : std::move(scrubbed);
}

// Damage that is found meanwhile makes it suspect again, and a record that can't be read does so each time.
Result<> CacheStore::discard_suspect(const std::string& dataset, PartialArea& area) {
  Result<> noted;
  for (int tries = 0; noted && tries < 3; ++tries) {
    const auto known = damage_.of(dataset);
    if (!known) return known.take_error();
    if (!known->makes_suspect(Damage::kInProgress)) return {};
    if (auto cleared = area.clear(); !cleared) return cleared;
    noted = damage_.change(dataset, [&](Damage& now) {
      return now.revision == known->revision && now.sound.insert(Damage::kInProgress).second;
    });
  }
  auto sound = damage_.check_sound(dataset, Damage::kInProgress);
  return sound || noted ? std::move(sound) : std::move(noted);
}

}  // namespace spark::staging
