#include "staging/cache/place/reset.hpp"

#include <stdio.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.hpp"
#include "base/text.hpp"
#include "staging/cache/folder/cache_folder.hpp"

namespace spark::staging {
namespace {

std::string in_words(const std::vector<Evicted>& copies) {
  constexpr std::size_t kMostNamed = 10;
  std::vector<std::string> named;
  for (const Evicted& one : copies) named.push_back(printable(one.dataset) + " " + format_bytes(one.bytes));
  return join_first(named, kMostNamed);
}

// Its log first: it must not be applied to a new file.
Result<std::string> set_aside(const std::filesystem::path& state_dir) {
  const std::filesystem::path file = state_dir / "catalog.sqlite", aside = state_dir / "catalog.sqlite.old";
  for (const char* suffix : {"-wal", "-shm"})
    if (::unlink((file.native() + suffix).c_str()) != 0 && errno != ENOENT)
      return fail_errno(errno, "deleting " + printable(file.native()) + suffix);
  if (::rename(file.c_str(), aside.c_str()) != 0)
    return fail_errno(errno, "moving " + printable(file.native()) + " away");
  if (auto flushed = flush_folder(state_dir); !flushed) return flushed.take_error();
  return aside.native();
}

// By dataset.
Result<std::vector<Evicted>> copies_in(Catalog& catalog) {
  const auto rows = catalog.generations();
  if (!rows) return rows.take_error();
  std::vector<Evicted> copies;
  for (const GenerationRow& row : *rows) {
    if (copies.empty() || copies.back().dataset != row.dataset) copies.push_back({row.dataset, 0});
    copies.back().bytes += row.allocated;
  }
  return copies;
}

Result<Reset> delete_all(const CacheConfig& config, const Clock& clock, std::vector<Evicted> copies) {
  const auto cache = Cache::open(config, clock);
  if (!cache) return cache.take_error();
  if (auto recovered = (*cache)->recover([] {}); !recovered) return recovered.take_error();
  Reset reset;
  for (Evicted& one : copies) {
    const auto freed = (*cache)->evict(one.dataset);
    if (!freed && freed.error().kind == Errc::NotFound) continue;
    if (!freed) return freed.take_error();
    one.bytes = *freed;
    reset.deleted.push_back(std::move(one));
  }
  return reset;
}

}  // namespace

Result<Reset> reset_cache(const CacheConfig& config, const Clock& clock, Wish wish) {
  const auto catalog = Catalog::open(config.state_dir);
  auto known = catalog ? (*catalog)->cache_id() : fail(catalog.error());
  auto rows = known ? copies_in(**catalog) : fail(known.error());
  Reset reset;
  if (!rows) {
    if (!is_unusable_catalog(rows.error())) return rows.take_error();
    auto aside = set_aside(config.state_dir);
    if (!aside) return aside.take_error();
    reset.set_aside = std::move(*aside);
    if (auto made = Catalog::open(config.state_dir); !made) return made.take_error();
    return reset;
  }
  const auto found = CacheFolder(config.path).id();
  if (!found) return found.take_error();
  if (known->empty()) return reset;
  const std::string doing = "resetting the cache " + printable(config.path.native());
  if (*known != *found) {
    if (!rows->empty() && wish != Wish::Forget)
      return fail(Errc::Refused,
                  doing + ": " + (found->empty() ? "nothing of it" : "another cache") +
                      " is in the folder, and these copies would be forgotten: " + in_words(*rows),
                  "mount its drive, if that is all; if the drive is gone or was emptied: `sudo spark-stage "
                  "cache reset --forget`, which deletes nothing");
    if (auto forgot = (*catalog)->set_cache_id(*found, Catalog::Copies::Forgotten); !forgot)
      return forgot.take_error();
    reset.forgotten = std::move(*rows);
    return reset;
  }
  if (rows->empty()) return reset;
  if (wish == Wish::DeleteCopies) return delete_all(config, clock, std::move(*rows));
  return fail(
      Errc::Refused, doing + ": it is usable, and its copies would be deleted: " + in_words(*rows),
      "`sudo spark-stage cache reset --delete-copies` deletes them; `spark-stage evict` deletes those "
      "of one dataset");
}

}  // namespace spark::staging
