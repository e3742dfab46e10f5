#include "staging/cache/inventory.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"
#include "staging/cache/catalog/spare_leases.hpp"
#include "staging/copy/need.hpp"
#include "staging/files/deletion.hpp"
#include "staging/files/space.hpp"
#include "staging/files/walk.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {
namespace {

// Evicted and deleted. The row of one stays if the catalog's drive is full then.
bool is_deleted(const CacheFolder& folder, const GenerationRow& row) {
  if (row.state != GenerationState::Evicting) return false;
  const auto is_absent = [](const std::filesystem::path& path) {
    return ::access(path.c_str(), F_OK) != 0 && errno == ENOENT;
  };
  return is_absent(folder.place(row.dataset, row.generation).path()) &&
         is_absent(folder.trashed(folder_name(row.dataset), row.generation));
}

void add_rows(const CacheFolder& folder, Inventory& inventory, const std::vector<GenerationRow>& rows) {
  for (const GenerationRow& row : rows) {
    Share& share = inventory[folder_name(row.dataset)];
    share.dataset = row.dataset;
    share.rows.push_back(row);
    if (is_deleted(folder, row)) continue;
    share.published.bytes += row.allocated;
    share.published.inodes += row.inodes;
  }
}

void add_copies(CacheStore& store, Inventory& inventory, const std::vector<std::filesystem::path>& partials,
                const std::vector<Reservation>& reservations, Counted counted) {
  for (const Reservation& one : reservations) {
    Share& share = inventory[folder_name(one.dataset)];
    share.dataset = one.dataset;
    share.reserved = {one.bytes, one.inodes};
    share.needed_by = "being staged";
  }
  for (const std::filesystem::path& partial : partials) {
    const std::string key = partial.filename();
    Share& share = inventory[key];
    if (share.dataset.empty()) share.dataset = dataset_of_folder(key).value_or(key);
    share.partial = counted == Counted::Now && share.in_progress()
                        ? footprint_of_partial(partial)
                        : footprint_of_partial_lately(partial, store.now(), share.in_progress());
  }
}

// By the key: of an abandoned copy alone, the dataset's name is not known.
bool is_wanted(const std::string& key, const Share& share, const std::vector<InUse>& in_use) {
  return std::ranges::any_of(in_use, [&](const InUse& one) {
    return (one.dataset == share.dataset || folder_name(one.dataset) == key) &&
           (one.generation == 0 ||
            std::ranges::count(share.rows, one.generation, &GenerationRow::generation) > 0);
  });
}

void add_lease(Inventory& inventory, const Lease& lease, Prefetched prefetched) {
  const auto found = inventory.find(folder_name(lease.dataset));
  if (found == inventory.end() || found->second.in_progress()) return;
  if (lease.is_soft && prefetched == Prefetched::MakesWay) {
    found->second.is_prefetched = true;
    return;
  }
  std::string& needed_by = found->second.needed_by;
  needed_by += (needed_by.empty() ? "leased by " : " and ") + printable(lease.holder);
}

// With those that the catalog could not take.
Result<std::vector<Lease>> leases_in(CacheStore& store) {
  auto all = store.catalog().leases();
  const auto spare = all ? SpareLeases(store.folder().path()).all() : fail(all.error());
  if (!spare) return spare.take_error();
  all->insert(all->end(), spare->leases.begin(), spare->leases.end());
  return all;
}

}  // namespace

Footprint Share::taken() const {
  const Footprint& copy = in_progress() ? reserved : partial;
  return {published.bytes + copy.bytes, published.inodes + copy.inodes};
}

std::vector<GenerationRow> rows_of_others(const CacheFolder& folder, std::vector<GenerationRow> rows) {
  std::erase_if(rows, [&](const GenerationRow& row) {
    auto manifest = ManifestReader::open(folder.place(row.dataset, row.generation).manifest());
    const auto summary = manifest ? summary_of(*manifest) : fail(manifest.error());
    return !summary || summary->hash == row.hash;
  });
  return rows;
}

std::string pair_of(const CacheConfig& config) {
  std::string pair;
  for (const std::filesystem::path& path : {config.state_dir / "catalog.sqlite", config.path / "data"})
    if (const auto identity = identity_of(path))
      pair += std::to_string(identity->inode) + " " + std::to_string(identity->birth_ns) + "\n";
  return pair;
}

Result<Inventory> take_inventory(CacheStore& store, const std::vector<InUse>& in_use, Prefetched prefetched,
                                 Counted counted) {
  const auto rows = store.generations();
  if (!rows) return rows.take_error();
  const auto reservations = store.catalog().reservations();
  if (!reservations) return reservations.take_error();
  const auto leases = leases_in(store);
  if (!leases) return leases.take_error();
  const auto troubles = store.catalog().troubles();
  if (!troubles) return troubles.take_error();
  const auto partials = store.folder().partial_areas();
  if (!partials) return partials.take_error();
  Inventory inventory;
  add_rows(store.folder(), inventory, *rows);
  add_copies(store, inventory, *partials, *reservations, counted);
  for (const Lease& lease : *leases) {
    // For a dataset that a job waits for, the caller has better information; see InUse.
    if (lease.is_staged() && is_live(lease, store.now())) add_lease(inventory, lease, prefetched);
  }
  for (auto& [key, share] : inventory) {
    if (share.needed_by.empty() && is_wanted(key, share, in_use)) share.needed_by = "in use";
    if (share.needed_by.empty() && troubles->contains(key))
      share.needed_by = "in trouble: see `spark-stage ls`";
  }
  return inventory;
}

Result<std::map<std::uint64_t, Bytes>> count_each(CacheFolder& folder, const std::string& dataset,
                                                  const std::set<std::uint64_t>& generations) {
  std::vector<Tree> trees;
  for (const std::uint64_t generation : generations) {
    auto tree = open_tree(folder.place(dataset, generation).path());
    if (!tree) return tree.take_error();
    trees.push_back(std::move(*tree));
  }
  const auto counted = footprints_of(trees, kNeverStopped);
  if (!counted) return counted.take_error();
  std::map<std::uint64_t, Bytes> each;
  auto one = counted->begin();
  for (const std::uint64_t generation : generations) each[generation] = (one++)->bytes;
  return each;
}

Result<> recount(CacheStore& store, const std::string& dataset) {
  const auto rows = store.ready_generations(dataset);
  if (!rows) return rows.take_error();
  std::set<std::uint64_t> generations;
  for (const GenerationRow& row : *rows) generations.insert(row.generation);
  const auto each = count_each(store.folder(), dataset, generations);
  if (!each) return each.take_error();
  for (const auto& [generation, bytes] : *each)
    if (auto set = store.catalog().set_allocated(dataset, generation, bytes); !set) return set;
  return {};
}

Result<Deletion> look_before_deleting(CacheStore& store, const std::vector<GenerationRow>& rows,
                                      const StopFlag& stop) {
  std::vector<std::filesystem::path> roots;
  for (const GenerationRow& row : rows)
    roots.push_back(store.folder().place(row.dataset, row.generation).path());
  return look_before_deleting(roots, stop);
}

Result<> look_before_evicting(CacheStore& store, Share& share, const StopFlag& stop) {
  auto found = look_before_deleting(store, share.rows, stop);
  if (!found && found.error().kind == Errc::Cancelled) return found.take_error();
  if (!found) found = Deletion{0, found.error().what, false};  // another dataset's trouble
  share.freed = found->freed;
  share.needed_by = found->obstacle;
  share.need_passes = found->passes;
  return {};
}

Candidate candidate_for(const Share& share, WallTime now) {
  Candidate candidate;
  candidate.dataset = share.dataset;
  if (share.in_progress()) {
    candidate.bytes = share.reserved.bytes;
    candidate.inodes = share.reserved.inodes;
    candidate.is_prefetched = true;
    return candidate;
  }
  candidate.bytes = share.published.bytes + share.partial.bytes;
  candidate.inodes = share.published.inodes + share.partial.inodes;
  if (share.freed) candidate.freed = *share.freed + share.partial.bytes;
  candidate.is_useless = !share.rows.empty() && share.rows.front().is_suspect;
  candidate.is_prefetched = share.is_prefetched;
  if (share.rows.empty()) return candidate;
  const GenerationRow& newest = share.rows.front();
  candidate.stage_seconds = newest.stage_seconds;
  candidate.idle = std::chrono::duration_cast<std::chrono::seconds>(now - newest.last_used);
  return candidate;
}

std::string holders_in_words(const Inventory& inventory) {
  std::vector<const Share*> held;
  for (const auto& [key, share] : inventory) {
    if (!share.needed_by.empty() && share.taken().inodes > 0) held.push_back(&share);
  }
  std::ranges::sort(held, std::ranges::greater{}, [](const Share* share) { return share->taken().bytes; });
  std::vector<std::string> words;
  for (const Share* share : held) {
    words.push_back(printable(share->dataset) + " " + format_bytes(share->taken().bytes) + " (" +
                    share->needed_by + ")");
  }
  return join(words, ", ");
}

Result<Usage> usage_of(CacheStore& store, const CacheConfig& config) {
  const auto inventory = take_inventory(store, {}, Prefetched::MakesWay, Counted::Lately);
  if (!inventory) return inventory.take_error();
  const auto space = space_of(store.folder().path());
  if (!space) return space.take_error();
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
