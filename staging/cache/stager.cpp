#include "staging/cache/stager.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "staging/cache/inventory.hpp"
#include "staging/cache/serve.hpp"
#include "staging/copy/exchange.hpp"
#include "staging/copy/source_place.hpp"
#include "staging/copy/transfer/touched.hpp"
#include "staging/copy/transfer/viewer.hpp"
#include "staging/files/source_trouble.hpp"
#include "staging/files/space.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/names.hpp"
#include "staging/models/hub_cache.hpp"
#include "staging/models/structure.hpp"
#include "staging/outputs/published_copies.hpp"
#include "staging/view/view_map.hpp"

namespace spark::staging {
namespace {

std::uint32_t to_seconds(WallTime time) {
  return static_cast<std::uint32_t>(std::max<std::int64_t>(0, seconds_since_1970(time)));
}

// The next attempt reads everything again.
Result<> refuse_damaged(const Tree& tree, PartialArea& area) {
  if (auto cleared = area.clear(); !cleared) return cleared;
  return fail(
      Errc::Mismatch,
      tree.shown("") + " no longer has the content that stage-out published there: its hash differs",
      "`spark-stage verify VOLUME:PATH` names the files that differ; if they were changed on purpose, delete "
      "the file .NAME.spark-manifest beside it");
}

Staged blocked(const Source& source, std::vector<std::string> prefetches) {
  Staged staged;
  staged.dataset = source.dataset;
  staged.blocked_by = std::move(prefetches);
  return staged;
}

}  // namespace

Result<Staged> Stager::stage(const Source& source, const CopyOptions& options) {
  auto tree = open_source(source);
  if (!tree) return fail(with_denial(std::move(tree.error())));
  tree->is_told_to_others = true;
  if (auto noted = source.is_away ? Result<>() : note_file_system(*tree); !noted) return noted.take_error();
  std::error_code unknown;
  const auto cache = std::filesystem::weakly_canonical(config_.path, unknown);
  // The tree may be around a model's folder.
  std::filesystem::path walked = tree->root();
  if (source.model && !source.is_away) walked = std::filesystem::weakly_canonical(source.path, unknown);
  if (is_inside((unknown ? config_.path : cache).native(), walked.native()))
    return fail(Errc::Invalid, tree->shown("") + " holds the cache itself",
                "stage a folder without the cache");
  auto area = monitor_.during(
      CopyPhase::Walking, [&] { return PartialArea::open(store_.folder().partial(source.dataset), stop_); });
  // On a full drive an unchanged copy is served without.
  if (!area && area.error().kind != Errc::NoSpace) return area.take_error();
  if (area && !source.only_cached)
    area->before_change = [this, dataset = source.dataset, view = options.view] {
      ViewMap::withdraw_all(SystemRoot{}, config_.state_dir, dataset, view);
    };
  std::error_code none;
  if (area && area->before_change && !std::filesystem::exists(area->data(), none)) area->before_change();
  if (auto recovered = area ? store_.recover_key(folder_name(source.dataset), *area) : Result<>(); !recovered)
    return recovered.take_error();
  if (auto fitting = area && !source.only_cached ? keep_fitting(source, *area) : Result<>(); !fitting)
    return fitting.take_error();
  CopyOptions wanted = options;
  wanted.exclude.insert(wanted.exclude.end(), source.exclude.begin(), source.exclude.end());
  wanted.is_source_away = source.is_away;
  wanted.keep_free = std::max(options.keep_free, config_.keep_free);
  const auto ready = store_.ready_generations(source.dataset);
  if (!ready) return ready.take_error();
  auto same = ready->empty() || !area ? std::nullopt
              : source.elsewhere      ? serve_same_content(store_, source, ready->front(), monitor_, stop_)
                                      : serve_same_state(store_, source, state_of(source, wanted, config_),
                                                         ready->front(), monitor_);
  if (wanted.exchange != nullptr) wanted.exchange->begin({state_key_of(source, wanted), source.origin});
  auto staged = same ? std::move(*same) : look_and_stage(source, *tree, wanted, area, *ready);
  if (!staged || staged->is_reserved || !staged->blocked_by.empty()) return staged;
  const Destination place = store_.folder().place(source.dataset, staged->generation);
  if (options.viewer != nullptr) options.viewer->published(place.path(), place.manifest());
  if (auto held = hold(source, *staged); !held) return held.take_error();
  const auto drop = [&]() -> Result<> {
    drop_superseded(*staged, source.in_use);
    return {};
  };
  const bool has_older = std::ranges::any_of(
      *ready, [&](const GenerationRow& row) { return row.generation != staged->generation; });
  const auto dropped = has_older ? monitor_.during(CopyPhase::Publishing, drop) : Result<>();
  return dropped ? std::move(staged) : fail(dropped.error());
}

Result<Staged> Stager::look_and_stage(const Source& source, Tree& tree, const CopyOptions& options,
                                      Result<PartialArea>& opened, const std::vector<GenerationRow>& ready) {
  const auto walk_here = [&]() -> Result<Walked> {
    if (source.is_away && !source.elsewhere)
      return fail(Errc::Unavailable, "its volume is away, and no peer has its entries");
    auto walked = walk(source, tree, options);
    if (!walked) walked.error().is_of_source = true;
    return walked;
  };
  // Followed links must be resolved on this host.
  const bool is_shared = options.exchange != nullptr && !source.only_cached && !source.model &&
                         !source.elsewhere && options.links != OutsideLinks::Copy;
  const auto walk_it = [&] { return is_shared ? options.exchange->walk(walk_here) : walk_here(); };
  auto walked = monitor_.during(CopyPhase::Walking, walk_it);
  if (!walked) return fail(with_source_trouble(std::move(walked.error())));
  const WalkNotes notes = *walked;
  if (source.walked) source.walked(*walked);
  // What a peer has sent gets the same checks as an entry of this host: its names were checked when read. No
  // host has setuid files of a set that they exchange: a peer could make its own program root's.
  const std::uint32_t mask = tree.file_mode_mask & (options.exchange != nullptr ? 01777U : 07777U);
  for (Entry& entry : walked->entries)
    if (entry.type == EntryType::File) entry.mode &= mask;
  const auto finish = [&](Result<Staged> staged) {
    if (staged && staged->blocked_by.empty())
      note_state(store_, *staged, state_of(source, options, config_), notes);
    return staged;
  };
  auto same = ready.empty() || source.elsewhere
                  ? std::nullopt
                  : serve_same_entries(store_, source, tree, ready.front(), *walked, monitor_, stop_);
  if (same) return finish(std::move(*same));
  if (!opened) return opened.take_error();
  PartialArea& area = *opened;
  if (source.only_cached && !source.is_prefetch)
    return fail(Errc::NotFound,
                "dataset " + printable(source.dataset) + " is not in the cache in its current state");
  const auto sound = std::ranges::find_if(ready, &GenerationRow::is_sound);
  const GenerationRow* earlier = sound == ready.end() ? nullptr : &*sound;
  auto compared = compare(source, tree, options, area, earlier, *walked);
  if (!compared) return fail(with_source_trouble(std::move(compared.error())));
  if (*compared) return finish(std::move(**compared));
  if (walked->entries.empty()) {
    walked = monitor_.during(CopyPhase::Walking, walk_it);
    equal_.clear();
  }
  if (!walked) return fail(with_source_trouble(std::move(walked.error())));
  if (auto there = check_place(store_, source, tree, *walked, options, ready); !there)
    return there.take_error();
  // Before gigabytes are copied; the copy is checked again.
  if (model_ && model_->check != ModelCheck::None && !source.is_away) {
    auto whole =
        monitor_.during(CopyPhase::Walking, [&] { return check_structure(tree, walked->entries, stop_); });
    if (!whole) return fail(with_source_trouble(std::move(whole.error())));
  }
  if (source.only_cached) return reserve(source, std::move(*walked), area, options, earlier);
  return finish(copy(source, tree, std::move(*walked), area, options, earlier));
}

Result<Walked> Stager::walk(const Source& source, Tree& tree, const CopyOptions& options) {
  if (!source.model && !source.elsewhere) return walk_source(tree, options.exclude, options.links, stop_);
  ModelOptions wanted = source.model.value_or(ModelOptions{});
  if (wanted.revision.empty()) wanted.revision = place_of_model(source.path).revision;
  auto model = source.elsewhere ? source.elsewhere->walk() : walk_model(tree, wanted, stop_);
  if (!model) return model.take_error();
  if (source.model) model_ = std::move(model->record);
  ref_ = std::move(model->ref);
  return std::move(model->walked);
}

Result<std::optional<Staged>> Stager::compare(const Source& source, const Tree& tree,
                                              const CopyOptions& options, const PartialArea& area,
                                              const GenerationRow* earlier, Walked& walked) {
  std::optional<Staged> same;
  const bool can_read = !source.is_away && !source.only_cached && !source.is_doubtful;
  if (!can_read || earlier == nullptr || walked.entries.empty()) return same;
  const Destination place = store_.folder().place(source.dataset, earlier->generation);
  auto compared = compare_touched(tree, walked.entries, place, area, options, monitor_, stop_);
  if (!compared) return compared.take_error();
  equal_ = std::move(compared->equal);
  if (!compared->is_same) return same;
  if (auto renewed = renew(place, walked.entries); !renewed) return renewed.take_error();
  same = serve_same_entries(store_, source, tree, *earlier, walked, monitor_, stop_);
  if (auto removed = remove_tree(area.folder(), "compared"); !removed) return removed.take_error();
  return same;
}

// Data read while another process wrote may be torn even if names, sizes and times match: a writer's file
// gets its times before its content.
Result<> Stager::keep_fitting(const Source& source, PartialArea& area) {
  if (auto cleared = source.is_doubtful ? area.clear() : Result<>(); !cleared) return cleared;
  if (auto rest = store_.discard_suspect(source.dataset, area); !rest) return rest;
  if (source.elsewhere) return area.keep_only(source.elsewhere->hash);
  return area.keep_only(source.is_doubtful ? "doubtful" : source.state);
}

// The space stays reserved while it may be useful: until the copy is ready, has failed, or is resumed later.
Result<Staged> Stager::copy(const Source& source, const Tree& tree, Walked walked, PartialArea& area,
                            const CopyOptions& options, const GenerationRow* earlier) {
  // Excluded or replaced entries are not in the manifest's hash.
  const bool is_all =
      options.exclude.empty() && options.links == OutsideLinks::Keep && !source.is_away && !source.model;
  const auto promised = is_all ? published_hash(tree, stop_) : std::nullopt;
  std::optional<Room> room;  // none if there is not enough space
  Bytes shared = 0;
  std::uint64_t generation = 0;
  PipelineEnds ends;
  ends.make_room = [&](const Entries& entries, const Resumed& resumed) -> Result<> {
    if (auto data = check_holes(entries, tree.shown("")); !data) return data;
    const RoomRequest request = room_for(source, entries, resumed, area, options);
    shared = request.shared.bytes;
    auto made =
        monitor_.during(CopyPhase::Walking, [&] { return make_room(store_, config_, request, stop_); });
    if (!made) return made.take_error();
    room = std::move(*made);
    if (!room->blocked_by.empty()) return fail(Errc::Cancelled, "prefetches have its room");
    return {};
  };
  ends.name = [&](ManifestHeader& header) {
    header.dataset = source.dataset;
    header.source = tree.root();
    header.file_system = tree.file_system;
    header.origin = source.origin;
    header.source_generation = source.generation;
    header.definition = source.definition;
    header.is_doubtful = source.is_doubtful;
    if (model_) header.model = to_text(*model_);
  };
  if (!ref_.empty())
    ends.correct = [&](const Tree& copy, Entries& entries) {
      return write_ref(copy, entries, ref_, model_->revision);
    };
  if (model_) ends.check_content = [&] { return check_model_in(tree, area, options, earlier); };
  ends.publish = [&](const Sealed& sealed, Bytes not_copied) -> Result<> {
    auto one = check_one_state(source, options, sealed.summary.hash);
    if (!one && one.error().kind == Errc::Mismatch)
      if (auto cleared = area.clear(); !cleared) return cleared;
    if (!one) return one;
    if (promised && sealed.summary.hash != *promised) return refuse_damaged(tree, area);
    CacheStore::Origin origin;
    if (shared > 0) origin.allocated[earlier->generation] = over(earlier->allocated, shared);
    Sealed with_pin = sealed;  // for the catalog: the manifest was written before the pin was known
    if (model_) with_pin.header.model = to_text(*model_);
    const auto published = publish(with_pin, area, not_copied, std::move(origin));
    if (!published) return published.take_error();
    generation = *published;
    return {};
  };
  CopyJob job{&tree,        std::move(walked),
              &area,        earlier == nullptr ? std::nullopt : contents_of(*earlier),
              &options,     &stop_,
              store_.now(), hooks_.before_read};
  auto report = copy_walked(std::move(job), ends, monitor_);
  if (!room) return report.take_error();
  if (!room->blocked_by.empty()) return blocked(source, std::move(room->blocked_by));
  if (!report) report.error() = with_source_trouble(std::move(report.error()));
  if (!report && report.error().kind != Errc::Unavailable)
    static_cast<void>(store_.catalog().drop_reservation(source.dataset));  // else the daemon drops it
  if (!report) return report.take_error();
  GenerationRow published;
  published.dataset = source.dataset;
  published.generation = generation;
  if (model_) published.model = summary_text(*model_);
  ForJobs jobs = for_jobs(store_.folder(), published);
  Staged staged{source.dataset, std::move(jobs.path), ServedFrom::Copied,
                generation,     std::move(*report),   std::move(room->evicted)};
  staged.model = std::move(jobs.model);
  return staged;
}

// The earlier copy from which unchanged files are taken over.
std::optional<Previous> Stager::contents_of(const GenerationRow& row) const {
  const Destination place = store_.folder().place(row.dataset, row.generation);
  auto tree = open_tree(place.path());
  if (!tree) return std::nullopt;
  return Previous{
      std::move(*tree),          place.manifest(),         row.scrubbed_at ? to_seconds(*row.scrubbed_at) : 0,
      to_seconds(row.staged_at), config_.served_read_only, equal_};
}

}  // namespace spark::staging
