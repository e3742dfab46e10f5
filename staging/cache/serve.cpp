#include "staging/cache/serve.hpp"

#include <sys/stat.h>

#include "base/access/named_path.hpp"
#include "base/json.hpp"
#include "staging/cache/folder/named_file.hpp"
#include "staging/copy/exchange.hpp"
#include "staging/copy/fill.hpp"
#include "staging/copy/source_place.hpp"
#include "staging/copy/transfer/touched.hpp"
#include "staging/copy/verify/verify.hpp"
#include "staging/files/tree.hpp"
#include "staging/models/hub_cache.hpp"

namespace spark::staging {

ForJobs for_jobs(const CacheFolder& folder, const GenerationRow& row) {
  ForJobs jobs{folder.place(row.dataset, row.generation).path(), std::nullopt};
  auto record = parse_model_record(row.model);
  if (!record) return jobs;
  jobs.model.emplace();
  if (!record->hub_folder.empty()) jobs.model->hub_cache = jobs.path;
  if (!record->entry_point.empty()) jobs.path /= record->entry_point;
  jobs.model->record = std::move(*record);
  return jobs;
}

namespace {

// Serves a generation without changing it.
std::optional<Staged> serve(CacheStore& store, const Source& source, const GenerationRow& row,
                            const Monitor& monitor, const WalkNotes& notes) {
  // With a full state folder the copy is served all the same; it only looks unused for longer.
  static_cast<void>(
      store.catalog().touch(row.dataset, row.generation, store.now(), source.generation, source.definition));
  Summary summary;
  summary.bytes = row.bytes;
  summary.files = row.files;
  summary.hash = row.hash;
  CopyReport report = report_of(summary, monitor);
  report.unchanged = true;
  add_notes(report, notes);
  name_file(store.folder(), row.dataset, row.generation);  // an earlier version made none
  ForJobs jobs = for_jobs(store.folder(), row);
  Staged staged{row.dataset, std::move(jobs.path), ServedFrom::Cache, row.generation, std::move(report), {}};
  staged.model = std::move(jobs.model);
  return staged;
}

// A model must have been checked as the request wants it.
bool is_as_wanted(const Source& source, const GenerationRow& row) {
  const auto record = parse_model_record(row.model);
  return record.has_value() == source.model.has_value() && (!record || record->satisfies(*source.model));
}

// Of a model's folder, the cache above it, so that the copy has the form of a cache. The folder may be a link
// to one of its name, as on another drive.
std::filesystem::path root_of(const Source& source, const std::optional<Within>& within) {
  if (!source.model) return source.path;
  std::filesystem::path root = place_of_model(source.path).path;
  const bool is_on_mount = source.mount.empty() || is_inside(root.native(), source.mount);
  if (!is_on_mount) return source.path;
  const std::string folder = hub_folder_of(source.model->name);
  const auto named = open_named(root / folder, Links::Followed, within);
  const std::filesystem::path real = named && S_ISDIR(named->info.st_mode) ? named->path : "";
  return real.filename() == folder ? real.parent_path() : root;
}

}  // namespace

// If a mount point has lost its file system, it is an empty folder of another one.
Result<Tree> open_source(const Source& source) {
  if (source.is_away) {
    Tree tree;
    tree.folder_path = source.path.native();
    tree.file_mode_mask = 01777;  // a peer can set no setuid bit
    return tree;
  }
  const std::optional<Within> within =
      source.device ? std::optional(Within{source.mount, *source.device}) : std::nullopt;
  auto tree = open_tree(root_of(source, within), RootLink::Followed, within);
  struct stat info {};
  if (!tree) tree.error().is_away = tree.error().kind == Errc::NotFound;
  if (!tree || !source.device || (::fstat(tree->folder.get(), &info) == 0 && info.st_dev == *source.device))
    return tree;
  return fail(Errc::Unavailable, tree->shown("") + " is not on the volume's file system",
              "`spark-stage status` shows the volume");
}

Result<> check_one_state(const Source& source, const CopyOptions& options, const std::string& hash) {
  if (source.elsewhere && hash == source.elsewhere->hash) return {};
  if (source.elsewhere)
    return fail(Errc::Mismatch, "peers sent something else than the copy that was chosen");
  if (!source.is_away) return source.is_still_so ? source.is_still_so() : Result<>();
  if (options.exchange != nullptr && options.exchange->is_published_elsewhere(hash)) return {};
  return fail(Errc::Unavailable, "its volume is away, and no peer has published the same content");
}

// Also after an eviction: the catalog knows the last copy.
Result<> check_place(CacheStore& store, const Source& source, const Tree& tree, const Walked& walked,
                     const CopyOptions& options, const std::vector<GenerationRow>& ready) {
  if (options.replaces != Replaces::SameSource || (source.is_away && !source.elsewhere)) return {};
  const auto from = store.catalog().copied_from(source.dataset);
  if (!from) return from.take_error();
  EntryType had = EntryType::File;
  if (ready.empty()) {
    if (!from->had_files) return {};
    had = EntryType::Symlink;  // not known: one link is enough
  } else if (ready.front().files == 0) {
    const auto most = most_in(store.folder().place(source.dataset, ready.front().generation).manifest());
    if (!most || *most == EntryType::Folder) return {};  // unreadable: it is damaged
    had = *most;
  }
  ManifestHeader then;
  then.source = from->source;
  then.file_system = from->file_system;
  if (source.device) then.file_system.clear();  // compared when the volume was mounted
  auto checked = check_source_place(tree, walked, then, had);
  if (!checked) checked.error().is_away = true;
  if (!checked && source.elsewhere)
    checked.error().hint =
        "mount its drive on the host that offers it; if it is meant to be so, stage it once with "
        "--accept-source";
  return checked;
}

std::string state_key_of(const Source& source, const CopyOptions& options) {
  if (source.state.empty() || !source.is_still_so || source.is_doubtful) return {};
  json::array key{source.state, source.within.native(), static_cast<int>(options.links)};
  for (const std::string& pattern : options.exclude) key.emplace_back(pattern);
  if (source.model) {
    key.emplace_back("model");
    key.emplace_back(source.model->name);
    key.emplace_back(source.model->revision);
    for (const std::string& pattern : source.model->include) key.emplace_back(pattern);
  }
  return json::serialize(key);
}

SourceState state_of(const Source& source, const CopyOptions& options, const CacheConfig& config) {
  if (!config.served_read_only) return {};
  return {state_key_of(source, options), {}};
}

std::optional<Staged> serve_same_state(CacheStore& store, const Source& source, const SourceState& state,
                                       const GenerationRow& row, const Monitor& monitor) {
  if (source.is_away || state.key.empty() || row.source.key != state.key || !row.is_sound() ||
      !is_as_wanted(source, row))
    return std::nullopt;
  const auto notes = parse_walk_notes(row.source.notes);
  if (!notes || !source.is_still_so()) return std::nullopt;
  return serve(store, source, row, monitor, *notes);
}

std::optional<Staged> serve_same_content(CacheStore& store, const Source& source, const GenerationRow& row,
                                         const Monitor& monitor, const StopFlag& stop) {
  if (row.hash != source.elsewhere->hash || row.is_doubtful || !row.is_sound() || !is_as_wanted(source, row))
    return std::nullopt;
  const Destination place = store.folder().place(row.dataset, row.generation);
  auto manifest = ManifestReader::open(place.manifest());
  const auto copy = open_tree(place.path());
  if (!manifest || !copy) return std::nullopt;
  const auto differences = compare_metadata(*copy, *manifest, 1, stop);
  if (!differences || !differences->empty()) return std::nullopt;
  return serve(store, source, row, monitor, {});
}

std::optional<Staged> serve_same_entries(CacheStore& store, const Source& source, const Tree& tree,
                                         const GenerationRow& row, Walked& walked, const Monitor& monitor,
                                         const StopFlag& stop) {
  if ((row.is_doubtful && !source.is_doubtful) || !is_as_wanted(source, row)) return std::nullopt;
  const Destination place = store.folder().place(row.dataset, row.generation);
  auto manifest = ManifestReader::open(place.manifest());
  const auto copy = open_tree(place.path());
  if (row.is_suspect || !manifest || !copy) return std::nullopt;
  const bool is_same = source.is_away ? is_same_source(*manifest, walked.entries)
                                      : is_same_source(tree, *copy, *manifest, walked.entries);
  if (!is_same || !manifest->rewind()) return std::nullopt;
  walked.entries.clear();  // a million entries twice would take too much memory
  const auto differences = compare_metadata(*copy, *manifest, 1, stop);
  if (!differences || !differences->empty()) return std::nullopt;
  return serve(store, source, row, monitor, walked);
}

void note_state(CacheStore& store, Staged& staged, SourceState state, const WalkNotes& notes) {
  if (state.key.empty()) return;
  state.notes = to_text(notes);
  auto noted = store.catalog().note_source(staged.dataset, staged.generation, state);
  if (!noted) staged.report.warnings.push_back(noted.error().message());
}

}  // namespace spark::staging
