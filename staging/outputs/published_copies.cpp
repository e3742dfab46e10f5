#include "staging/outputs/published_copies.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/file.hpp"
#include "base/text.hpp"
#include "staging/copy/partial/publish.hpp"
#include "staging/copy/verify/verify.hpp"
#include "staging/manifest/names.hpp"
#include "staging/outputs/removed.hpp"

namespace spark::staging {
namespace {

constexpr char kManifest[] = ".spark-manifest";

bool is_there(const std::filesystem::path& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

// None if it was not published there. Its time is that of the manifest: the volume's changes with a file that
// is added to it, and with a delegation that the NFS server recalls.
std::optional<PublishedCopy> copy_at(const Destination& destination) {
  if (!is_there(destination.manifest())) return std::nullopt;
  const auto identity = identity_of(destination.path());
  if (!identity) return std::nullopt;
  auto manifest = ManifestReader::open(destination.manifest());
  if (!manifest || !is_same_object(manifest->header().root, *identity)) return std::nullopt;
  const auto root = manifest->next();
  if (!root) return std::nullopt;
  return PublishedCopy{destination.name, root->mtime_ns};
}

// The rename is durable before anything is deleted: after a power cut the copy is either complete or its name
// is gone.
Result<> remove_copy(const Destination& destination) {
  const std::filesystem::path away = destination.folder / companion_name(destination.name, kRemoved);
  if (auto renamed = rename_to_new(destination.path(), away); !renamed) return renamed;
  if (auto flushed = flush_folder(destination.folder); !flushed) return flushed;
  if (auto removed = remove_tree(destination.folder, destination.manifest().filename()); !removed)
    return removed;
  return remove_tree(destination.folder, away.filename());
}

// Completes interrupted removals. A manifest without its copy may also belong to a publishing in progress on
// another host, which still has its partial folder.
Result<> finish_removals(const std::filesystem::path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (!name.starts_with('.')) continue;
    if (name.ends_with(kRemoved)) {
      if (auto removed = remove_tree(folder, name); !removed) return removed;
      continue;
    }
    if (!name.ends_with(kManifest)) continue;
    const std::string copy = name.substr(1, name.size() - sizeof kManifest);
    const Destination destination{folder, copy};
    if (destination.manifest().filename() != name || is_there(destination.path()) ||
        is_there(destination.partial()))
      continue;
    if (auto removed = remove_tree(folder, name); !removed) return removed;
  }
  return {};
}

}  // namespace

Result<std::vector<PublishedCopy>> published_copies(const std::filesystem::path& folder) {
  const auto names = names_of(folder);
  if (!names) return names.take_error();
  std::vector<PublishedCopy> copies;
  for (const std::string& name : *names) {
    if (name.starts_with('.')) continue;
    if (auto copy = copy_at({folder, name})) copies.push_back(std::move(*copy));
  }
  std::ranges::sort(copies, [](const PublishedCopy& a, const PublishedCopy& b) {
    return a.mtime_ns != b.mtime_ns ? a.mtime_ns > b.mtime_ns : a.name > b.name;
  });
  return copies;
}

Result<std::vector<std::string>> keep_newest(const std::filesystem::path& folder, std::size_t keep,
                                             const std::set<std::string>& spared) {
  const auto names = names_of(folder);
  if (!names) return names.take_error();
  if (auto finished = finish_removals(folder, *names); !finished) return finished.take_error();
  const auto copies = published_copies(folder);
  if (!copies) return copies.take_error();
  std::vector<std::string> removed;
  for (std::size_t i = std::max<std::size_t>(keep, 1); i < copies->size(); ++i) {
    const std::string& name = (*copies)[i].name;
    if (spared.contains(name)) continue;
    if (auto gone = remove_copy({folder, name}); !gone) return gone.take_error();
    removed.push_back(name);
  }
  return removed;
}

std::optional<std::string> published_hash(const Tree& tree, const StopFlag& stop) {
  const auto destination = destination_of(tree.root());
  if (!destination || !is_there(destination->manifest())) return std::nullopt;
  const auto identity = identity_of(destination->path());
  auto manifest = ManifestReader::open(destination->manifest());
  if (!identity || !manifest || !is_same_object(manifest->header().root, *identity)) return std::nullopt;
  const auto differences = compare_metadata(tree, *manifest, 1, stop, FileTimes::Ignored);
  if (!differences || !differences->empty() || !manifest->rewind()) return std::nullopt;
  const auto summary = summary_of(*manifest);
  return summary ? std::optional(summary->hash) : std::nullopt;
}

Result<CopyReport> verify_published(const std::filesystem::path& path, const CopyOptions& options,
                                    const ProgressSink& progress, const StopFlag& stop) {
  const auto destination = destination_of(path);
  if (!destination) return destination.take_error();
  const std::string shown = printable(path.native());
  const auto identity = identity_of(destination->path());
  if (!identity) return fail_with(identity.error(), "verifying " + shown);
  auto manifest = ManifestReader::open(destination->manifest());
  if (!manifest || !is_same_object(manifest->header().root, *identity)) {
    return fail(Errc::NotFound, "verifying " + shown + ": it has no manifest of its own",
                "only copies published by stage-out can be compared");
  }
  const auto copy = open_tree(destination->path());
  if (!copy) return copy.take_error();
  Monitor monitor(progress);
  const auto summary = verify_copy(*copy, *manifest, options, monitor, stop, FileTimes::Ignored);
  if (!summary) return summary.take_error();
  CopyReport report;
  report.bytes = summary->bytes;
  report.files = summary->files;
  report.hash = summary->hash;
  report.seconds = monitor.seconds();
  return report;
}

}  // namespace spark::staging
