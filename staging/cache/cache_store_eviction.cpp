// The last steps of a generation.
#include <cerrno>
#include <cstdio>

#include "base/text.hpp"
#include "staging/cache/cache_store.hpp"
#include "staging/cache/catalog/spare_leases.hpp"
#include "staging/cache/inventory.hpp"
#include "staging/files/tree.hpp"
#include "staging/files/walk.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {
namespace {

// What can't be read is no obstacle: the caller looked before.
bool is_open(const std::filesystem::path& copy) {
  const StopFlag never{false};
  std::vector<Tree> trees;
  auto tree = open_tree(copy);
  if (tree) trees.push_back(std::move(*tree));
  const auto looked = look_before_deleting(trees, never);
  return looked && looked->passes;
}

}  // namespace

Result<> CacheStore::mark_evicted(const std::vector<GenerationRow>& rows) {
  const auto spare = SpareLeases(folder_.path()).all();
  if (!spare) return spare.take_error();
  if (auto marked = catalog_->begin_eviction(rows, now(), spare->leases); !marked) return marked;
  return after(step_, "marked");
}

Result<> CacheStore::delete_marked(const std::vector<GenerationRow>& rows) {
  Result<> all;
  for (const GenerationRow& row : rows) {
    auto gone = finish_eviction(row);
    if (gone) continue;
    const bool is_kept = gone.error().kind == Errc::Refused;  // as it was
    auto noted =
        is_kept ? Result<>() : catalog_->set_trouble(folder_name(row.dataset), gone.error().message());
    if (all) all = noted ? std::move(gone) : std::move(noted);
  }
  return all;
}

// Makes an evicted generation invisible to jobs, before it is deleted. Refused, and it stays as it was, if a
// program has opened a file of it since the caller looked.
Result<> CacheStore::put_aside(const GenerationRow& row) {
  if (auto dropped = folder_.drop_link(row.dataset, row.generation); !dropped) return dropped;
  if (auto go_on = after(step_, "unlinked"); !go_on) return go_on;
  const std::filesystem::path copy = folder_.place(row.dataset, row.generation).path();
  const std::filesystem::path aside = folder_.trashed(folder_name(row.dataset), row.generation);
  // After the rename no program can open its files by name. A copy that was already in the trash, without its
  // manifest, may be deleted in part.
  const auto manifest = folder_.place(row.dataset, row.generation).manifest();
  const bool is_whole = ::rename(copy.c_str(), aside.c_str()) == 0 || ::access(manifest.c_str(), F_OK) == 0;
  if (is_whole && is_open(aside)) return put_back(row, aside, copy);
  if (auto moved = folder_.move_to_trash(row.dataset, row.generation); !moved) return moved;
  return after(step_, "trashed");
}

Result<> CacheStore::put_back(GenerationRow row, const std::filesystem::path& aside,
                              const std::filesystem::path& copy) {
  if (::rename(aside.c_str(), copy.c_str()) != 0)
    return fail_errno(errno, "moving " + printable(aside.native()) + " back");
  row.state = GenerationState::Ready;
  if (auto put = catalog_->put(row); !put) return put;
  if (auto linked = update_link(row.dataset); !linked) return linked;
  return fail(Errc::Refused,
              "evicting " + printable(row.dataset) + ": a program has just opened a file of it",
              "wait until that has ended (`fuser -m` or `lsof` name it)");
}

// The row stays until everything is deleted: it describes the remaining data and its size.
Result<> CacheStore::finish_eviction(const GenerationRow& row) {
  const std::string key = folder_name(row.dataset);
  if (auto aside = put_aside(row); !aside) return aside;
  if (auto deleted = folder_.delete_trashed(key, row.generation); !deleted) {
    const StopFlag never{false};
    const auto tree = open_tree(folder_.trashed(key, row.generation));
    const auto rest = tree ? footprints_of({&*tree, 1}, never) : fail(tree.error());
    GenerationRow left = row;
    left.state = GenerationState::Evicting;
    if (rest) left.allocated = rest->front().bytes;
    if (auto put = rest ? catalog_->put(left) : Result<>(); !put) return put;
    return fail_with(std::move(deleted.error()), "deleting the evicted " + printable(row.dataset));
  }
  if (auto removed = catalog_->remove(row.dataset, row.generation); !removed) return removed;
  // What an older one shared with it was counted here.
  if (const auto left = ready_generations(row.dataset);
      left && !left->empty() && left->back().generation < row.generation)
    static_cast<void>(recount(*this, row.dataset));
  return after(step_, "forgotten");
}

// For a generation that is proven to be gone.
Result<> CacheStore::forget(const GenerationRow& row) {
  if (auto dropped = folder_.drop_link(row.dataset, row.generation); !dropped) return dropped;
  if (auto moved = folder_.move_to_trash(row.dataset, row.generation); !moved) return moved;
  return catalog_->remove(row.dataset, row.generation);
}

}  // namespace spark::staging
