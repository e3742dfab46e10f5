#include "staging/cache.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.hpp"
#include "staging/cache_store.hpp"
#include "staging/cache_with.hpp"
#include "staging/fill.hpp"
#include "staging/names.hpp"
#include "staging/space.hpp"
#include "staging/tree.hpp"
#include "staging/verify.hpp"

namespace spark::staging {
namespace {

// Keeps a generation from being evicted while this process reads it.
class ReadLease {
 public:
  ReadLease(Catalog& catalog, std::string id) : catalog_(catalog), id_(std::move(id)) {}
  ~ReadLease() { [[maybe_unused]] const auto removed = catalog_.remove_lease(id_); }
  ReadLease(const ReadLease&) = delete;
  ReadLease& operator=(const ReadLease&) = delete;

  Result<> take(const GenerationRow& row) {
    Lease lease;
    lease.id = id_;
    lease.dataset = row.dataset;
    lease.generation = row.generation;
    lease.holder = "a verification, pid " + std::to_string(::getpid());
    lease.pid = ::getpid();
    lease.pid_start_time = process_start_time(lease.pid).value_or(0);
    return catalog_.add_lease(lease);
  }

 private:
  Catalog& catalog_;
  std::string id_;
};

tl::unexpected<Error> not_staged(const std::string& doing, const std::string& dataset) {
  return fail(Errc::NotFound, doing + " " + printable(dataset) + ": it is not in the cache",
              "`spark-stage ls` shows what is");
}

class DiskCache final : public Cache {
 public:
  DiskCache(const CopyHooks& hooks, const CacheConfig& config, std::unique_ptr<CacheStore> store)
      : hooks_(hooks), config_(config), store_(std::move(store)) {}

  Result<Staged> stage(const Source& source, const CopyOptions& options, const ProgressSink& progress,
                       const StopFlag& stop) override {
    auto staged = stage_locked(source, options, progress, stop);
    if (!staged) return fail_with(std::move(staged.error()), "staging " + printable(source.dataset));
    return staged;
  }

  Result<std::vector<DatasetRow>> list() override {
    const auto generations = store_->catalog().generations();
    if (!generations) return tl::unexpected<Error>(generations.error());
    std::vector<DatasetRow> rows;
    for (const GenerationRow& from : *generations) {
      if (from.state != GenerationState::Ready || (!rows.empty() && rows.back().name == from.dataset))
        continue;
      DatasetRow row;
      row.name = from.dataset;
      row.path = store_->folder().place(from.dataset, from.generation).path();
      row.bytes = from.bytes;
      row.files = from.files;
      row.generation = from.generation;
      row.hash = from.hash;
      row.damage = from.damage;
      row.staged_at = from.staged_at;
      row.last_used = from.last_used;
      rows.push_back(std::move(row));
    }
    return rows;
  }

  Result<CopyReport> verify(const std::string& dataset, const ProgressSink& progress,
                            const StopFlag& stop) override {
    const auto rows = store_->ready_generations(dataset);
    if (!rows) return tl::unexpected<Error>(rows.error());
    if (rows->empty()) return not_staged("verifying", dataset);
    const GenerationRow& row = rows->front();
    ReadLease lease(store_->catalog(), "verify-" + std::to_string(::getpid()) + "-" + folder_name(dataset));
    if (auto taken = lease.take(row); !taken) return tl::unexpected<Error>(std::move(taken.error()));
    Monitor monitor(progress);
    auto manifest = check(row, monitor, stop);
    const bool is_damaged = !manifest && manifest.error().kind == Errc::Mismatch;
    const std::string damage = is_damaged ? manifest.error().what : "";
    if ((manifest || is_damaged) && damage != row.damage) {
      auto noted = store_->catalog().set_damage(dataset, row.generation, damage);
      if (!noted) return tl::unexpected<Error>(std::move(noted.error()));
    }
    if (!manifest) return fail_with(std::move(manifest.error()), "verifying " + printable(dataset));
    return report_of(*manifest, monitor);
  }

  Result<Bytes> evict(const std::string& dataset) override {
    const StopFlag never{false};
    auto area = PartialArea::open(store_->folder().partial(dataset), never);
    if (!area) return tl::unexpected<Error>(std::move(area.error()));
    const auto rows = store_->ready_generations(dataset);
    if (!rows) return tl::unexpected<Error>(rows.error());
    Bytes freed = size_of_partial(area->folder());
    if (rows->empty() && freed == 0) return not_staged("evicting", dataset);
    for (const GenerationRow& row : *rows) {
      if (auto evicted = store_->evict(row); !evicted)
        return tl::unexpected<Error>(std::move(evicted.error()));
      freed += row.allocated;
    }
    if (auto cleared = area->clear(); !cleared) return tl::unexpected<Error>(std::move(cleared.error()));
    return freed;
  }

  Result<Usage> usage() override {
    const auto generations = store_->catalog().generations();
    if (!generations) return tl::unexpected<Error>(generations.error());
    const auto space = space_of(store_->folder().path());
    if (!space) return tl::unexpected<Error>(space.error());
    Usage usage;
    for (const GenerationRow& row : *generations) usage.used += row.allocated;
    for (const auto& partial : std::filesystem::directory_iterator(store_->folder().partials())) {
      usage.used += size_of_partial(partial.path());
    }
    const auto minus = [](Bytes a, Bytes b) { return a > b ? a - b : 0; };
    usage.free = minus(space->free, config_.keep_free);
    usage.capacity = config_.capacity > 0 ? config_.capacity : usage.used + usage.free;
    usage.free = std::min(usage.free, minus(usage.capacity, usage.used));
    return usage;
  }

 private:
  CopyHooks hooks_;
  CacheConfig config_;
  std::unique_ptr<CacheStore> store_;

  Result<Staged> stage_locked(const Source& source, const CopyOptions& options, const ProgressSink& progress,
                              const StopFlag& stop) {
    Monitor monitor(progress);
    auto tree = open_tree(source.path);
    if (!tree) return tl::unexpected<Error>(std::move(tree.error()));
    if (is_inside(std::filesystem::weakly_canonical(config_.path).native(), tree->root())) {
      return fail(Errc::Invalid, tree->shown("") + " holds the cache itself",
                  "stage a folder without the cache");
    }
    auto area = PartialArea::open(store_->folder().partial(source.dataset), stop);
    if (!area) return tl::unexpected<Error>(std::move(area.error()));
    CopyOptions wanted = options;
    wanted.exclude.insert(wanted.exclude.end(), source.exclude.begin(), source.exclude.end());
    wanted.keep_free = std::max(options.keep_free, config_.keep_free);
    auto walked = monitor.during(CopyPhase::Walking, [&] { return walk(*tree, wanted.exclude, stop); });
    if (!walked) return tl::unexpected<Error>(std::move(walked.error()));
    const auto ready = store_->ready_generations(source.dataset);
    if (!ready) return tl::unexpected<Error>(ready.error());

    std::vector<std::string> skipped = walked->skipped;
    auto staged = !ready->empty() ? serve(ready->front(), *walked, monitor, stop) : std::optional<Staged>();
    if (!staged) {
      auto copied = copy(source, *tree, std::move(*walked), *area, wanted, monitor, stop);
      if (!copied) return copied;
      staged = std::move(*copied);
    }
    staged->report.skipped = std::move(skipped);
    if (auto dropped = drop_superseded(*staged); !dropped)
      return tl::unexpected<Error>(std::move(dropped.error()));
    return std::move(*staged);
  }

  // The newest generation, if it is whole and equal to the source.
  std::optional<Staged> serve(const GenerationRow& row, const Walked& walked, Monitor& monitor,
                              const StopFlag& stop) {
    const Destination place = store_->folder().place(row.dataset, row.generation);
    const auto manifest = read_manifest(place.manifest());
    if (!row.damage.empty() || !manifest || !is_same_source(*manifest, walked.entries)) return std::nullopt;
    const auto copy = open_tree(place.path());
    if (!copy) return std::nullopt;
    const auto differences = compare_metadata(*copy, *manifest, 1, stop);
    if (!differences || !differences->empty()) return std::nullopt;
    if (!store_->catalog().touch(row.dataset, row.generation, store_->now())) return std::nullopt;
    Staged staged{row.dataset, place.path(), ServedFrom::Cache, row.generation,
                  report_of(*manifest, monitor)};
    staged.report.unchanged = true;
    return staged;
  }

  Result<Staged> copy(const Source& source, const Tree& tree, Walked walked, PartialArea& area,
                      const CopyOptions& options, Monitor& monitor, const StopFlag& stop) {
    const Need need = need_of(walked.entries, finished_before(area, walked.entries));
    if (auto fits = check_fits(need, options.keep_free); !fits) return tl::unexpected<Error>(fits.error());
    FillJob job{&tree, std::move(walked), &area, &options, &stop, hooks_.before_read};
    auto filled = fill(std::move(job), monitor);
    if (!filled) return tl::unexpected<Error>(std::move(filled.error()));
    filled->manifest.dataset = source.dataset;
    filled->manifest.source = source.path.native();
    if (auto same = verify_if_asked(options, area, filled->manifest, monitor, stop); !same) {
      return tl::unexpected<Error>(std::move(same.error()));
    }
    auto generation =
        monitor.during(CopyPhase::Publishing, [&] { return publish_new(filled->manifest, area); });
    if (!generation) return tl::unexpected<Error>(std::move(generation.error()));
    Staged staged{source.dataset, store_->folder().place(source.dataset, *generation).path(),
                  ServedFrom::Copied, *generation, report_of(filled->manifest, monitor)};
    staged.report.resumed_bytes = filled->resumed_bytes;
    staged.report.warnings = std::move(filled->warnings);
    return staged;
  }

  Result<std::uint64_t> publish_new(Manifest& manifest, PartialArea& area) {
    const auto generation = unused_generation(manifest.dataset);
    if (!generation) return generation;
    const Destination place = store_->folder().place(manifest.dataset, *generation);
    if (::mkdir(place.folder.c_str(), 0755) != 0 && errno != EEXIST) {
      return fail_errno(errno, "making folder " + printable(place.folder.native()));
    }
    if (auto flushed = flush_folder(store_->folder().data()); !flushed)
      return tl::unexpected<Error>(flushed.error());
    if (auto published = publish(place, area, manifest, store_->step()); !published) {
      return tl::unexpected<Error>(std::move(published.error()));
    }
    if (auto go_on = after(store_->step(), "published"); !go_on) return tl::unexpected<Error>(go_on.error());
    if (auto entered = store_->enter(manifest, *generation); !entered) {
      return tl::unexpected<Error>(std::move(entered.error()));
    }
    return generation;
  }

  // Never the name of what lies there for an unknown reason.
  Result<std::uint64_t> unused_generation(const std::string& dataset) {
    for (;;) {
      const auto generation = store_->catalog().next_generation(dataset);
      if (!generation || !identity_of(store_->folder().place(dataset, *generation).path())) return generation;
    }
  }

  // Capacity first, then the file system.
  Result<> check_fits(const Need& need, Bytes keep_free) {
    if (config_.capacity > 0) {
      const auto now = usage();
      if (!now) return tl::unexpected<Error>(now.error());
      if (need.bytes > config_.capacity) {
        return fail(Errc::NoSpace,
                    "it needs " + format_bytes(need.bytes) + " and the whole cache may hold " +
                        format_bytes(config_.capacity),
                    "raise cache.capacity, or exclude a part of it");
      }
      if (now->used + need.bytes > config_.capacity) {
        return fail(Errc::NoSpace,
                    "it needs " + format_bytes(need.bytes) + " and the cache holds " +
                        format_bytes(now->used) + " of " + format_bytes(config_.capacity),
                    "evict a dataset (`spark-stage ls`, `spark-stage evict NAME`) or raise cache.capacity");
      }
    }
    return check_space(need, store_->folder().path(), keep_free);
  }

  static Result<> verify_if_asked(const CopyOptions& options, PartialArea& area, const Manifest& manifest,
                                  Monitor& monitor, const StopFlag& stop) {
    if (!options.verify) return {};
    const auto copy = open_tree(area.data());
    if (!copy) return tl::unexpected<Error>(copy.error());
    auto same = verify_copy(*copy, manifest, options, monitor, stop);
    if (same || same.error().kind != Errc::Mismatch) return same;
    if (auto cleared = area.clear(); !cleared) return cleared;  // nothing of it is taken over
    return same;
  }

  Result<> drop_superseded(const Staged& staged) {
    const auto rows = store_->ready_generations(staged.dataset);
    if (!rows) return tl::unexpected<Error>(rows.error());
    for (const GenerationRow& row : *rows) {
      if (row.generation == staged.generation) continue;
      auto evicted = store_->evict(row);
      if (!evicted && evicted.error().kind != Errc::Refused) return evicted;  // leased: it goes later
    }
    return {};
  }

  Result<Manifest> check(const GenerationRow& row, Monitor& monitor, const StopFlag& stop) {
    const Destination place = store_->folder().place(row.dataset, row.generation);
    auto manifest = read_manifest(place.manifest());
    const auto copy = manifest ? open_tree(place.path()) : tl::unexpected<Error>(manifest.error());
    if (!copy) {
      Error error = copy.error();
      if (error.kind == Errc::NotFound) error.kind = Errc::Mismatch;  // it should be there
      return tl::unexpected<Error>(std::move(error));
    }
    if (auto same = verify_copy(*copy, *manifest, {}, monitor, stop); !same) {
      return tl::unexpected<Error>(std::move(same.error()));
    }
    return manifest;
  }

  // What a partial copy takes; 0 if there is none, or it is just going away.
  static Bytes size_of_partial(const std::filesystem::path& folder) {
    const StopFlag never{false};
    const auto tree = open_tree(folder / "data");
    const auto walked = tree ? walk(*tree, {}, never) : Result<Walked>();
    Bytes sum = 0;
    if (tree && walked) {
      for (const Entry& entry : walked->entries) sum += entry.link_to.empty() ? entry.allocated : 0;
    }
    return sum;
  }

  static CopyReport report_of(const Manifest& manifest, const Monitor& monitor) {
    CopyReport report;
    report.bytes = manifest.bytes();
    report.files = manifest.files();
    report.hash = manifest.hash();
    report.seconds = monitor.seconds();
    report.memfree_drop_bytes = monitor.memfree_drop();
    return report;
  }
};

}  // namespace

Result<std::unique_ptr<Cache>> open_cache_with(const CopyHooks& hooks, const CacheConfig& config,
                                               const Clock& clock) {
  auto catalog = Catalog::open(config.state_dir);
  if (!catalog) return tl::unexpected<Error>(std::move(catalog.error()));
  auto store = std::make_unique<CacheStore>(CacheFolder(config.path), std::move(*catalog), clock, hooks.step);
  if (auto known = store->check_identity(); !known) return tl::unexpected<Error>(std::move(known.error()));
  if (auto made = store->folder().make(); !made) return tl::unexpected<Error>(std::move(made.error()));
  if (auto recovered = store->recover(); !recovered)
    return tl::unexpected<Error>(std::move(recovered.error()));
  return std::unique_ptr<Cache>(std::make_unique<DiskCache>(hooks, config, std::move(store)));
}

Result<std::unique_ptr<Cache>> Cache::open(const CacheConfig& config, const Clock& clock) {
  return open_cache_with({}, config, clock);
}

}  // namespace spark::staging
