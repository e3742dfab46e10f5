// The last steps of a generation.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <functional>

#include "base/text.hpp"
#include "staging/cache/cache_store.hpp"
#include "staging/cache/catalog/spare_leases.hpp"
#include "staging/cache/folder/named_file.hpp"
#include "staging/cache/inventory.hpp"
#include "staging/files/deletion.hpp"
#include "staging/files/tree.hpp"
#include "staging/files/walk.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {
namespace {

using Rows = std::vector<GenerationRow>;

std::filesystem::path aside(const CacheFolder& folder, const GenerationRow& row) {
  return folder.trashed(folder_name(row.dataset), row.generation);
}

// Without its manifest it may be deleted in part.
bool is_whole(const CacheFolder& folder, const GenerationRow& row) {
  return ::access(folder.place(row.dataset, row.generation).manifest().c_str(), F_OK) == 0;
}

// What can't be looked at may be open: the caller looked before, or another process, which was interrupted.
Result<> check_closed(const CacheFolder& folder, const Rows& rows) {
  std::vector<Tree> trees;
  for (const GenerationRow& row : rows) {
    if (!is_whole(folder, row)) continue;
    auto tree = open_tree(folder.place(row.dataset, row.generation).path());
    if (!tree && tree.error().kind == Errc::NotFound) tree = open_tree(aside(folder, row));
    if (tree) trees.push_back(std::move(*tree));
    if (!tree && tree.error().kind != Errc::NotFound) return tree.take_error();
  }
  const auto looked = look_before_deleting(trees, kNeverStopped);
  if (!looked) return looked.take_error();
  if (!looked->passes) return {};
  return fail(Errc::Refused,
              "evicting " + printable(rows.front().dataset) + ": a program has just opened a file of it",
              "wait until that has ended (`fuser -m` or `lsof` name it)");
}

// Its manifest stays where it is. One that is not in its place may have been hidden before.
void hide(const CacheFolder& folder, const GenerationRow& row) {
  const std::filesystem::path copy = folder.place(row.dataset, row.generation).path();
  static_cast<void>(::rename(copy.c_str(), aside(folder, row).c_str()));
}

// False: it was deleted by hand.
Result<bool> show_again(const CacheFolder& folder, const GenerationRow& row) {
  const std::filesystem::path hidden = aside(folder, row);
  const std::filesystem::path copy = folder.place(row.dataset, row.generation).path();
  if (::rename(hidden.c_str(), copy.c_str()) == 0) return true;
  if (errno != ENOENT) return fail_errno(errno, "moving " + printable(hidden.native()) + " back");
  return folder.has_generation(folder_name(row.dataset), row.generation);
}

}  // namespace

Result<> CacheStore::mark_evicted(const Rows& rows) {
  const auto spare = SpareLeases(folder_.path()).all();
  if (!spare) return spare.take_error();
  if (auto marked = catalog_->begin_eviction(rows, now(), spare->leases); !marked) return marked;
  return after(step_, "marked");
}

Result<> CacheStore::delete_marked(const Rows& rows) {
  auto all = put_aside(rows);
  const bool is_aside = all.has_value();
  for (const GenerationRow& row : rows) {
    auto gone = is_aside ? delete_aside(row) : Result<>();
    if (all && !gone) all = std::move(gone);
  }
  if (all || all.error().kind == Errc::Refused) return all;
  auto noted = catalog_->set_trouble(folder_name(rows.front().dataset), all.error().message());
  return noted ? std::move(all) : std::move(noted);
}

// Makes evicted generations of one dataset invisible to jobs, before they are deleted. Refused, and all of
// them stay as they were, if a program has opened a file of one since the caller looked. So they do after
// another error of that look.
Result<> CacheStore::put_aside(const Rows& rows) {
  // Before anything is moved: a program that reads one of them finds each of its files.
  if (auto closed = check_closed(folder_, rows); !closed) return put_back(rows, std::move(closed.error()));
  for (const GenerationRow& row : rows) {
    remove_name(folder_, row.dataset, row.generation);
    if (auto dropped = folder_.drop_link(row.dataset, row.generation); !dropped) return dropped;
    if (auto go_on = after(step_, "unlinked"); !go_on) return go_on;
    hide(folder_, row);
  }
  // From now on no program can open their files by name.
  if (auto closed = check_closed(folder_, rows); !closed) return put_back(rows, std::move(closed.error()));
  for (const GenerationRow& row : rows) {
    if (auto moved = folder_.move_to_trash(row.dataset, row.generation); !moved) return moved;
    if (auto go_on = after(step_, "trashed"); !go_on) return go_on;
  }
  return {};
}

// Refused, whatever the reason: nothing is wrong with the dataset, and the next look may succeed. The newest
// first: an older one would be served in its place.
Result<> CacheStore::put_back(Rows rows, Error why) {
  std::ranges::sort(rows, std::ranges::greater{}, &GenerationRow::generation);
  for (const GenerationRow& row : rows) {
    const auto shown = is_whole(folder_, row) ? show_again(folder_, row) : false;
    if (!shown) return shown.take_error();
    if (!*shown) continue;
    if (auto kept = catalog_->end_eviction(row.dataset, row.generation); !kept) return kept;
  }
  const std::string& dataset = rows.front().dataset;
  if (auto linked = update_link(dataset); !linked) return linked;
  why.kind = Errc::Refused;
  return fail(std::move(why));
}

// The row stays until everything is deleted: it describes the remaining data and its size.
Result<> CacheStore::delete_aside(const GenerationRow& row) {
  const std::string key = folder_name(row.dataset);
  if (auto deleted = folder_.delete_trashed(key, row.generation); !deleted) {
    const auto tree = open_tree(folder_.trashed(key, row.generation));
    const auto rest = tree ? footprints_of({&*tree, 1}, kNeverStopped) : fail(tree.error());
    const Bytes left = rest ? rest->front().bytes : row.allocated;
    if (auto set = catalog_->set_allocated(row.dataset, row.generation, left); !set) return set;
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
  remove_name(folder_, row.dataset, row.generation);
  if (auto dropped = folder_.drop_link(row.dataset, row.generation); !dropped) return dropped;
  if (auto moved = folder_.move_to_trash(row.dataset, row.generation); !moved) return moved;
  return catalog_->remove(row.dataset, row.generation, Catalog::Holders::Stay);
}

}  // namespace spark::staging
