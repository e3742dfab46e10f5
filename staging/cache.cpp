#include "staging/cache.hpp"

#include <unistd.h>

#include <algorithm>

#include "base/text.hpp"
#include "staging/cache_store.hpp"
#include "staging/cache_with.hpp"
#include "staging/digest_check.hpp"
#include "staging/fill.hpp"
#include "staging/names.hpp"
#include "staging/room.hpp"
#include "staging/source_trouble.hpp"
#include "staging/stager.hpp"
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
    lease.process = process_with(::getpid());
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
    Stager stager(hooks_, config_, *store_, progress, stop);
    auto staged = stager.stage(source, options);
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
      row.is_doubtful = from.is_doubtful;
      row.source_generation = from.source_generation;
      row.staged_at = from.staged_at;
      row.last_used = from.last_used;
      row.scrubbed_at = from.scrubbed_at;
      row.good_at = std::max(from.good_at, from.scrubbed_at.value_or(from.good_at));
      rows.push_back(std::move(row));
    }
    return rows;
  }

  Result<CopyReport> verify(const std::string& dataset, const CopyOptions& options,
                            const ProgressSink& progress, const StopFlag& stop) override {
    const auto rows = store_->ready_generations(dataset);
    if (!rows) return tl::unexpected<Error>(rows.error());
    if (rows->empty()) return not_staged("verifying", dataset);
    const GenerationRow& row = rows->front();
    ReadLease lease(store_->catalog(), "verify-" + std::to_string(::getpid()) + "-" + folder_name(dataset));
    if (auto taken = lease.take(row); !taken) return tl::unexpected<Error>(std::move(taken.error()));
    Monitor monitor(progress);
    auto sound = check(row, options, monitor, stop);
    if (!sound && is_medium_error(sound.error().number)) sound.error().kind = Errc::Mismatch;
    const bool is_damaged = !sound && sound.error().kind == Errc::Mismatch;
    if (sound || is_damaged) {
      const std::string damage = is_damaged ? sound.error().what : "";
      auto noted = store_->catalog().set_scrubbed(dataset, row.generation, damage, store_->now());
      if (noted) noted = store_->update_link(dataset);
      if (!noted) return tl::unexpected<Error>(std::move(noted.error()));
    }
    if (is_damaged) {
      sound.error().hint =
          "it is served no more: stage it again; if it happens again, test the drive and the memory";
    }
    if (!sound) return fail_with(std::move(sound.error()), "verifying " + printable(dataset));
    const Destination place = store_->folder().place(row.dataset, row.generation);
    Result<std::uint64_t> checked = 0;
    if (options.sha256) checked = check_digests(place.path(), place.manifest(), options, monitor, stop);
    if (!checked) return fail_with(std::move(checked.error()), "verifying " + printable(dataset));
    CopyReport report = report_of(*sound, monitor);
    report.sha256_files = *checked;
    return report;
  }

  Result<Bytes> evict(const std::string& dataset) override {
    auto area = PartialArea::try_open(store_->folder().partial(dataset));
    if (!area && area.error().kind == Errc::Unavailable) {
      return fail(Errc::Refused, "evicting " + printable(dataset) + ": it is being staged right now",
                  "wait until that has ended, or stop it");
    }
    if (!area) return tl::unexpected<Error>(std::move(area.error()));
    const auto rows = store_->ready_generations(dataset);
    if (!rows) return tl::unexpected<Error>(rows.error());
    Bytes freed = footprint_of_partial(area->folder()).bytes;
    if (rows->empty() && freed == 0) return not_staged("evicting", dataset);
    if (auto evicted = store_->evict(*rows); !evicted)
      return tl::unexpected<Error>(std::move(evicted.error()));
    for (const GenerationRow& row : *rows) freed += row.allocated;
    if (auto cleared = area->clear(); !cleared) return tl::unexpected<Error>(std::move(cleared.error()));
    return freed;
  }

  Result<Usage> usage() override { return usage_of(*store_, config_); }

  Result<> drop_reservations_but(const std::vector<std::string>& in_progress) override {
    const auto reservations = store_->catalog().reservations();
    if (!reservations) return tl::unexpected<Error>(reservations.error());
    for (const Reservation& one : *reservations) {
      if (std::ranges::find(in_progress, one.dataset) != in_progress.end()) continue;
      if (auto dropped = store_->catalog().drop_reservation(one.dataset); !dropped) return dropped;
    }
    return {};
  }

 private:
  CopyHooks hooks_;
  CacheConfig config_;
  std::unique_ptr<CacheStore> store_;

  Result<Summary> check(const GenerationRow& row, const CopyOptions& options, Monitor& monitor,
                        const StopFlag& stop) {
    const Destination place = store_->folder().place(row.dataset, row.generation);
    auto manifest = ManifestReader::open(place.manifest());
    const auto copy = manifest ? open_tree(place.path()) : tl::unexpected<Error>(manifest.error());
    if (!copy) {
      Error error = copy.error();
      if (error.kind == Errc::NotFound) error.kind = Errc::Mismatch;  // it should be there
      return tl::unexpected<Error>(std::move(error));
    }
    return verify_copy(*copy, *manifest, options, monitor, stop);
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
