#include "staging/cache/cache.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <type_traits>
#include <utility>

#include "base/file.hpp"
#include "base/text.hpp"
#include "staging/cache/cache_store.hpp"
#include "staging/cache/cache_with.hpp"
#include "staging/cache/catalog/read_lease.hpp"
#include "staging/cache/catalog/reserve.hpp"
#include "staging/cache/inventory.hpp"
#include "staging/cache/serve.hpp"
#include "staging/cache/stager.hpp"
#include "staging/copy/fill.hpp"
#include "staging/copy/need.hpp"
#include "staging/copy/verify/digest_check.hpp"
#include "staging/copy/verify/model_check.hpp"
#include "staging/copy/verify/verify.hpp"
#include "staging/files/source_trouble.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {
namespace {

// Before an eviction is refused: the process that watches the page cache has a file open for moments.
constexpr int kMoreLooks = 5;
constexpr std::chrono::milliseconds kBetweenLooks{100};

tl::unexpected<Error> not_staged(const std::string& doing, const std::string& dataset) {
  return fail(Errc::NotFound, doing + " " + printable(dataset) + ": it is not in the cache",
              "`spark-stage ls` lists the staged datasets");
}

Result<std::unique_ptr<CacheStore>> open_store(const CopyHooks& hooks, const CacheConfig& config,
                                               const Clock& clock) {
  auto catalog = Catalog::open(config.state_dir, config.if_missing);
  if (!catalog) return catalog.take_error();
  auto store = std::make_unique<CacheStore>(CacheFolder(config.path), std::move(*catalog), clock, hooks.step);
  if (auto known = store->check_identity(config.state_dir); !known) return known.take_error();
  return store;
}

class DiskCache final : public Cache {
 public:
  DiskCache(const CopyHooks& hooks, const CacheConfig& config, const Clock& clock,
            std::unique_ptr<CacheStore> store)
      : hooks_(hooks),
        config_(config),
        clock_(clock),
        reserve_({config.state_dir, config.path}),
        store_(std::move(store)) {}

  Result<Staged> stage(const Source& source, const CopyOptions& options, const ProgressSink& progress,
                       const StopFlag& stop) override {
    auto staged = making_room([&] {
      CacheConfig config = config_;
      config.keep_free = std::max(config.keep_free, reserve_.lent());
      return Stager(hooks_, config, *store_, progress, stop).stage(source, options);
    });
    if (!staged) return fail_with(std::move(staged.error()), "staging " + printable(source.dataset));
    return staged;
  }

  Result<> recover(const std::function<void()>& looked_over) override {
    const std::filesystem::path file = config_.state_dir / "compared";
    const std::string pair = pair_of(config_);
    const bool compares = read_file(file).value_or("") != pair;
    auto recovered = making_room([&] { return store_->recover(looked_over, compares); });
    const auto troubles = store_->catalog().troubles();
    if (compares && recovered && troubles && troubles->empty())
      static_cast<void>(write_file_atomically(file, pair));  // without it they are compared again
    return recovered;
  }

  Result<Bytes> evict(const std::string& dataset) override {
    return making_room([&] { return evict_now(dataset); });
  }

  // The newest generation of each dataset, ordered by name.
  Result<std::vector<DatasetRow>> list() override {
    const auto generations = store_->generations();
    if (!generations) return generations.take_error();
    auto troubles = store_->catalog().troubles();
    if (!troubles) return troubles.take_error();
    std::vector<DatasetRow> rows;
    for (const GenerationState state : {GenerationState::Ready, GenerationState::Evicting}) {
      for (const GenerationRow& from : *generations) {
        const std::string key = folder_name(from.dataset);
        const auto newest = std::ranges::find(rows, from.dataset, &DatasetRow::name);
        const bool is_listed = newest != rows.end();
        if (is_listed && state == GenerationState::Ready && from.state == state)
          newest->older.push_back(row_of(from));
        // An evicted generation disappears soon, unless its deletion has failed.
        const bool is_shown = state == GenerationState::Ready || troubles->contains(key);
        if (from.state != state || is_listed || !is_shown) continue;
        rows.push_back(row_of(from));
        rows.back().trouble = (*troubles)[key];
        troubles->erase(key);
      }
    }
    for (const auto& [key, what] : *troubles) {
      if (what.empty()) continue;
      DatasetRow& row = rows.emplace_back();
      row.name = dataset_of_folder(key).value_or(key);  // so that it can be evicted
      row.trouble = what;
    }
    std::ranges::sort(rows, {}, &DatasetRow::name);
    return rows;
  }

  Result<CopyReport> verify(const std::string& dataset, const CopyOptions& options,
                            const ProgressSink& progress, const StopFlag& stop) override {
    const auto rows = store_->ready_generations(dataset);
    if (!rows) return rows.take_error();
    if (rows->empty()) return not_staged("verifying", dataset);
    const GenerationRow& row = rows->front();
    ReadLease lease(store_->catalog(), SpareLeases(store_->folder().path()),
                    "verify-" + std::to_string(::getpid()) + "-" + folder_name(dataset), "a verification");
    if (auto taken = lease.take(row); !taken) return taken.take_error();
    const auto known = store_->damage().of(dataset);
    if (!known) return known.take_error();
    Monitor monitor(progress);
    std::optional<ModelRecord> model;
    Result<> published;
    auto sound = check(row, options, monitor, stop, model, published);
    const bool is_damaged = !sound && is_damage(sound.error());
    // Of a drive that is gone, each copy looks damaged.
    if (auto there = is_damaged ? store_->folder().check_answers() : Result<>(); !there)
      return fail_with(std::move(there.error()), "verifying " + printable(dataset));
    if (is_damaged) sound.error().kind = Errc::Mismatch;
    if (sound || is_damaged) {
      const std::string damage = is_damaged ? sound.error().what : "";
      auto noted = store_->note_verified(row, damage, *known);
      if (!noted && !is_damaged) return noted.take_error();
      if (!noted) sound.error().what += "; this was not recorded beside it: " + noted.error().what;
    }
    if (is_damaged) {  // the catalog may have it nevertheless
      const auto now = store_->damage().of(dataset);
      sound.error().hint =
          now && now->makes_suspect(row.generation)
              ? "it is no longer served: stage it again; if it happens again, test the drive and the memory"
              : "verify it again, so that it is no longer served";
    }
    if (!sound) return fail_with(std::move(sound.error()), "verifying " + printable(dataset));
    const Destination place = store_->folder().place(row.dataset, row.generation);
    Result<std::uint64_t> checked = model ? model->sha256 : 0;
    if (options.sha256 && *checked == 0)
      checked = check_digests(place.path(), place.manifest(), options, monitor, stop);
    if (!checked) return fail_with(std::move(checked.error()), "verifying " + printable(dataset));
    if (!published) return fail_with(std::move(published.error()), "verifying " + printable(dataset));
    CopyReport report = report_of(*sound, monitor);
    report.sha256_files = options.sha256 ? *checked : 0;
    return report;
  }

  Result<Usage> usage() override { return usage_of(*store_, config_); }

  Result<> drop_ended_reservations(const std::vector<std::uint64_t>& in_progress,
                                   std::uint64_t newest) override {
    return store_->catalog().drop_ended_reservations(in_progress, newest);
  }

 private:
  CopyHooks hooks_;
  CacheConfig config_;
  const Clock& clock_;
  Reserve reserve_;  // outlives the catalog
  std::unique_ptr<CacheStore> store_;

  // Making room takes some: for the catalog's changes, and for locks.
  template <class Work>
  std::invoke_result_t<Work> making_room(const Work& work) {
    bool is_again = false;
    return reserve_.with([&]() -> std::invoke_result_t<Work> {
      // The catalog of a full drive was opened as an image.
      if (std::exchange(is_again, true)) {
        auto store = open_store(hooks_, config_, clock_);
        if (!store) return store.take_error();
        store_ = std::move(*store);
      }
      return work();
    });
  }

  Result<Bytes> evict_now(const std::string& dataset) {
    const std::string doing = "evicting " + printable(dataset), key = folder_name(dataset);
    auto area = PartialArea::open_within(store_->folder().partial(dataset), hooks_.room.lock);
    if (!area && area.error().kind == Errc::Unavailable) {
      return fail(Errc::Refused, doing + ": another process works on it, as a staging does",
                  "wait until that has ended, or stop it");
    }
    if (!area) return area.take_error();
    const auto known = store_->catalog().generations();
    if (!known) return known.take_error();
    Bytes freed = footprint_of_partial(area->folder()).bytes;
    bool is_there = freed > 0;
    for (const GenerationRow& row : *known) {
      if (row.dataset != dataset) continue;
      is_there = true;
      freed += row.allocated;
    }
    if (auto recovered = store_->recover_key(key, *area); !recovered)
      return fail_with(std::move(recovered.error()), doing);
    const auto rows = store_->ready_generations(dataset);
    if (!rows) return rows.take_error();
    if (!is_there && rows->empty()) return not_staged("evicting", dataset);
    auto looked = look_before_deleting(*store_, *rows, kNeverStopped);
    for (int again = 0; again < kMoreLooks && looked && looked->passes; ++again) {
      std::this_thread::sleep_for(kBetweenLooks);
      looked = look_before_deleting(*store_, *rows, kNeverStopped);
    }
    if (!looked) return fail_with(std::move(looked.error()), doing);
    if (!looked->obstacle.empty()) {
      return fail(Errc::Refused, doing + ": " + looked->obstacle,
                  looked->passes
                      ? "wait until the program that reads it has ended (`fuser -m` or `lsof` name it)"
                      : "allow it with `chattr -ia`, then evict it again");
    }
    if (auto marked = store_->mark_evicted(*rows); !marked) return marked.take_error();
    if (auto gone = store_->delete_marked(*rows); !gone) return gone.take_error();
    if (auto cleared = area->clear(); !cleared) return cleared.take_error();
    if (auto dropped = store_->damage().drop(dataset); !dropped) return dropped.take_error();
    const auto troubles = store_->catalog().troubles();
    if (troubles && troubles->contains(key))
      return fail(Errc::Failed, troubles->at(key), "fix that, then evict it again");
    return freed;
  }

  DatasetRow row_of(const GenerationRow& from) {
    DatasetRow row;
    static_cast<CopyFacts&>(row) = from;
    row.name = from.dataset;
    ForJobs jobs = for_jobs(store_->folder(), from);
    row.path = std::move(jobs.path);
    row.model = std::move(jobs.model);
    if (from.damage.empty() && from.is_suspect)
      row.damage = "another copy of it was damaged, and this one was not read back since";
    row.is_evicting = from.state == GenerationState::Evicting;
    row.good_at = std::max(from.good_at, from.scrubbed_at.value_or(from.good_at));
    return row;
  }

  // `model`: if the copy is one; `published`: what was then found of its publisher's digests, which were
  // compared when it was staged.
  Result<Summary> check(const GenerationRow& row, const CopyOptions& options, Monitor& monitor,
                        const StopFlag& stop, std::optional<ModelRecord>& model, Result<>& published) {
    const Destination place = store_->folder().place(row.dataset, row.generation);
    auto manifest = ManifestReader::open(place.manifest());
    const auto copy = manifest ? open_tree(place.path()) : fail(manifest.error());
    if (!copy) {
      Error error = copy.error();
      // It is in the catalog, so it should exist.
      if (error.kind == Errc::NotFound) error.kind = Errc::Mismatch;
      return fail(std::move(error));
    }
    model = parse_model_record(manifest->header().model);
    if (!model) return verify_copy(*copy, *manifest, options, monitor, stop);
    auto verified = verify_model({place.path(), place.manifest(), ""}, *model, options, monitor, stop);
    if (!verified) return verified.take_error();
    published = std::move(verified->published);
    return std::move(verified->summary);
  }
};

}  // namespace

Result<std::unique_ptr<Cache>> open_cache_with(const CopyHooks& hooks, const CacheConfig& config,
                                               const Clock& clock) {
  auto store = open_store(hooks, config, clock);
  if (!store) return store.take_error();
  return std::unique_ptr<Cache>(std::make_unique<DiskCache>(hooks, config, clock, std::move(*store)));
}

Result<std::unique_ptr<Cache>> Cache::open(const CacheConfig& config, const Clock& clock) {
  return open_cache_with({}, config, clock);
}

}  // namespace spark::staging
