#include "staging/stager.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"
#include "staging/fill.hpp"
#include "staging/names.hpp"
#include "staging/tree.hpp"
#include "staging/verify.hpp"

namespace spark::staging {

Result<Staged> Stager::stage(const Source& source, const CopyOptions& options) {
  auto tree = open_tree(source.path);
  if (!tree) return tl::unexpected<Error>(std::move(tree.error()));
  if (is_inside(std::filesystem::weakly_canonical(config_.path).native(), tree->root())) {
    return fail(Errc::Invalid, tree->shown("") + " holds the cache itself",
                "stage a folder without the cache");
  }
  auto area = monitor_.during(
      CopyPhase::Walking, [&] { return PartialArea::open(store_.folder().partial(source.dataset), stop_); });
  if (!area) return tl::unexpected<Error>(std::move(area.error()));
  if (auto recovered = store_.recover_key(folder_name(source.dataset), *area); !recovered) {
    return tl::unexpected<Error>(std::move(recovered.error()));
  }
  CopyOptions wanted = options;
  wanted.exclude.insert(wanted.exclude.end(), source.exclude.begin(), source.exclude.end());
  wanted.keep_free = std::max(options.keep_free, config_.keep_free);
  auto walked = monitor_.during(CopyPhase::Walking, [&] { return walk(*tree, wanted.exclude, stop_); });
  if (!walked) return tl::unexpected<Error>(std::move(walked.error()));
  const auto ready = store_.ready_generations(source.dataset);
  if (!ready) return tl::unexpected<Error>(ready.error());

  std::vector<std::string> skipped = walked->skipped;
  auto staged = ready->empty() ? std::optional<Staged>() : serve(ready->front(), *walked);
  if (!staged) {
    auto copied = copy(source, *tree, std::move(*walked), *area, wanted, newest_of(*ready));
    if (!copied) return copied;
    staged = std::move(*copied);
  }
  staged->report.skipped = std::move(skipped);
  drop_superseded(*staged);
  return std::move(*staged);
}

// The newest generation, if it is whole and equal to the source.
std::optional<Staged> Stager::serve(const GenerationRow& row, const Walked& walked) {
  const Destination place = store_.folder().place(row.dataset, row.generation);
  const auto manifest = read_manifest(place.manifest());
  if (!row.damage.empty() || !manifest || !is_same_source(*manifest, walked.entries)) return std::nullopt;
  const auto copy = open_tree(place.path());
  if (!copy) return std::nullopt;
  const auto differences = compare_metadata(*copy, *manifest, 1, stop_);
  if (!differences || !differences->empty()) return std::nullopt;
  if (!store_.catalog().touch(row.dataset, row.generation, store_.now())) return std::nullopt;
  CopyReport report = report_of(*manifest, monitor_);
  report.unchanged = true;
  return Staged{row.dataset, place.path(), ServedFrom::Cache, row.generation, std::move(report)};
}

Result<Staged> Stager::copy(const Source& source, const Tree& tree, Walked walked, PartialArea& area,
                            const CopyOptions& options, std::optional<Previous> previous) {
  Resumed resumed = resume(area, walked.entries);
  if (previous) find_unchanged(*previous, walked.entries, resumed);
  const Need need = need_of(walked.entries, resumed, area);
  if (auto fits = check_fits(need, options.keep_free); !fits) return tl::unexpected<Error>(fits.error());
  FillJob job{&tree,  std::move(walked), &area, std::move(resumed), std::move(previous), &options,
              &stop_, hooks_.before_read};
  auto filled = fill(std::move(job), monitor_);
  if (!filled) return tl::unexpected<Error>(std::move(filled.error()));
  Manifest& manifest = filled->manifest;
  manifest.dataset = source.dataset;
  manifest.source = source.path.native();
  if (options.verify) {
    auto same = verify_partial(area, manifest, options, monitor_, stop_);
    if (!same) return tl::unexpected<Error>(std::move(same.error()));
  }
  auto generation = monitor_.during(CopyPhase::Publishing, [&] { return publish(manifest, area); });
  if (!generation) return tl::unexpected<Error>(std::move(generation.error()));
  CopyReport report = report_of(manifest, monitor_);
  report.resumed_bytes = filled->resumed_bytes;
  report.unchanged_bytes = filled->unchanged_bytes;
  report.warnings = std::move(filled->warnings);
  return Staged{source.dataset, store_.folder().place(source.dataset, *generation).path(), ServedFrom::Copied,
                *generation, std::move(report)};
}

// The newest generation, to take over from it what did not change; none if it is damaged.
std::optional<Previous> Stager::newest_of(const std::vector<GenerationRow>& ready) const {
  if (ready.empty() || !ready.front().damage.empty()) return std::nullopt;
  const Destination place = store_.folder().place(ready.front().dataset, ready.front().generation);
  auto tree = open_tree(place.path());
  if (!tree) return std::nullopt;
  return Previous{std::move(*tree), place.manifest()};
}

// Capacity first, then the file system.
Result<> Stager::check_fits(const Need& need, Bytes keep_free) {
  if (config_.capacity > 0) {
    if (need.bytes > config_.capacity) {
      return fail(Errc::NoSpace,
                  "it needs " + format_bytes(need.bytes) + " and the whole cache may hold " +
                      format_bytes(config_.capacity),
                  "raise cache.capacity, or exclude a part of it");
    }
    const auto now = usage_of(store_, config_);
    if (!now) return tl::unexpected<Error>(now.error());
    if (now->used - std::min(now->used, need.stale) + need.bytes > config_.capacity) {
      return fail(Errc::NoSpace,
                  "it needs " + format_bytes(need.bytes) + " and the cache holds " + format_bytes(now->used) +
                      " of " + format_bytes(config_.capacity),
                  "evict a dataset (`spark-stage ls`, `spark-stage evict NAME`) or raise cache.capacity");
    }
  }
  return check_space(need, store_.folder().path(), keep_free);
}

Result<std::uint64_t> Stager::publish(Manifest& manifest, PartialArea& area) {
  auto generation = unused_generation(manifest.dataset);
  if (!generation) return generation;
  const Destination place = store_.folder().place(manifest.dataset, *generation);
  if (::mkdir(place.folder.c_str(), 0755) != 0 && errno != EEXIST) {
    return fail_errno(errno, "making folder " + printable(place.folder.native()));
  }
  if (auto flushed = flush_folder(store_.folder().data()); !flushed) {
    return tl::unexpected<Error>(std::move(flushed.error()));
  }
  if (auto published = staging::publish(place, area, manifest, store_.step()); !published) {
    return tl::unexpected<Error>(std::move(published.error()));
  }
  if (auto go_on = after(store_.step(), "published"); !go_on) {
    return tl::unexpected<Error>(std::move(go_on.error()));
  }
  if (auto entered = store_.enter(manifest, *generation); !entered) {
    return tl::unexpected<Error>(std::move(entered.error()));
  }
  return generation;
}

// Never the name of what lies there for an unknown reason.
Result<std::uint64_t> Stager::unused_generation(const std::string& dataset) {
  for (;;) {
    auto generation = store_.catalog().next_generation(dataset);
    if (!generation || !identity_of(store_.folder().place(dataset, *generation).path())) return generation;
  }
}

// The dataset is ready by now: what goes wrong here is no failure of its staging.
void Stager::drop_superseded(Staged& staged) {
  const auto rows = store_.ready_generations(staged.dataset);
  if (!rows) return;
  for (const GenerationRow& row : *rows) {
    if (row.generation == staged.generation) continue;
    const auto evicted = store_.evict(row);
    if (evicted || evicted.error().kind == Errc::Refused) continue;  // leased: it goes later
    staged.report.warnings.push_back("an older generation was not removed: " + evicted.error().message());
  }
}

Result<Usage> usage_of(CacheStore& store, const CacheConfig& config) {
  const auto generations = store.catalog().generations();
  if (!generations) return tl::unexpected<Error>(generations.error());
  const auto space = space_of(store.folder().path());
  if (!space) return tl::unexpected<Error>(space.error());
  const auto minus = [](Bytes a, Bytes b) { return a > b ? a - b : 0; };
  Usage usage;
  for (const GenerationRow& row : *generations) usage.used += row.allocated;
  for (const std::filesystem::path& partial : store.folder().partial_areas()) {
    usage.used += size_of_partial(partial);
  }
  usage.free = minus(space->free, config.keep_free);
  usage.capacity = config.capacity > 0 ? config.capacity : usage.used + usage.free;
  usage.free = std::min(usage.free, minus(usage.capacity, usage.used));
  return usage;
}

}  // namespace spark::staging
