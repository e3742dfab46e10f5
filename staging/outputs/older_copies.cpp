// The deletion of older published copies.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>

#include "base/file_system.hpp"
#include "base/text.hpp"
#include "staging/checkpoints/checkpoint_name.hpp"
#include "staging/copy/partial/publish.hpp"
#include "staging/copy/partial/removal.hpp"
#include "staging/outputs/pointer.hpp"
#include "staging/outputs/published_copies.hpp"

namespace spark::staging {
namespace {

constexpr char kManifest[] = ".spark-manifest";

Result<bool> is_there(const std::filesystem::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0) return true;
  if (errno == ENOENT) return false;
  return fail_errno(errno, "looking at " + shown_path(path));
}

Result<> remove_manifest(const Destination& copy) {
  if (::unlink(copy.manifest().c_str()) == 0 || errno == ENOENT) return {};
  return fail_errno(errno, "deleting " + shown_path(copy.manifest()));
}

Result<> remove_copy(const Destination& destination, const WholeCopy& /*proof*/) {
  const auto manifest = manifest_of_published(destination);
  if (!manifest) return manifest.take_error();
  if (!*manifest)
    return fail(Errc::Refused, "deleting " + shown_path(destination.path()) + ": it is another one now");
  const RootIdentity root = (*manifest)->header().root;
  auto away = rename_for_removal(destination.folder, destination.name, root);
  if (!away) return away.take_error();
  // Another host may have published the name again.
  const auto left = ManifestReader::open(destination.manifest());
  const bool is_of_another = left && !is_same_object(left->header().root, root);
  if (auto removed = is_of_another ? Result<>() : remove_manifest(destination); !removed) return removed;
  return remove(std::move(*away));
}

// Of an interrupted removal. One without its copy may also belong to a publishing in progress on another
// host, which still has its partial folder.
Result<> remove_if_stray(const std::filesystem::path& folder, const std::string& manifest) {
  const Destination destination{folder, manifest.substr(1, manifest.size() - sizeof kManifest)};
  if (destination.manifest().filename() != manifest) return {};
  const auto is_published = is_there(destination.path()), is_partial = is_there(destination.partial());
  if (!is_published) return is_published.take_error();
  if (!is_partial) return is_partial.take_error();
  if (*is_published || *is_partial) return {};
  const auto opened = ManifestReader::open(destination.manifest());
  const bool is_one = opened && is_trusted(destination, *opened);  // and no other file that got such a name
  return is_one ? remove_manifest(destination) : Result<>();
}

Result<> remove_stray_manifests(const std::filesystem::path& folder) {
  const auto names = names_of(folder);
  if (!names) return names.take_error();
  Result<> all;
  for (const std::string& name : *names) {
    if (!name.starts_with('.') || !name.ends_with(kManifest)) continue;
    if (auto removed = remove_if_stray(folder, name); !removed && all) all = std::move(removed);
  }
  return all;
}

// The whole copies of a series that stay, and the saves that they are of.
struct Series {
  std::vector<WholeCopy> whole;
  std::size_t saves = 0;
};

}  // namespace

Result<std::vector<RemovedCopy>> remove_older_copies(const std::filesystem::path& folder, const Keep& keep,
                                                     PruneNotes& notes) {
  const auto note = [&](const Result<>& done) {
    if (!done && !notes.failure) notes.failure = done.error();
  };
  // First: otherwise a deleted copy would leave its manifest, and the copy that it replaced, in its partial
  // folder.
  note(finish_publishings(folder));
  note(finish_removals(folder, &notes.unproven));
  note(remove_stray_manifests(folder));
  NotListed not_listed;
  const auto copies = published_checkpoints(folder, keep.rule, &not_listed);
  if (!copies) return copies.take_error();
  const std::size_t count = std::max<std::size_t>(keep.count, 1);
  std::map<std::string, Series> kept;  // by form
  std::vector<RemovedCopy> removed;
  std::string best;
  for (const PublishedCopy& copy : *copies) {
    const auto step = step_of(copy.name);
    Series& above = kept[form_of(copy.name)];
    const bool is_same =
        !above.whole.empty() && save_of(above.whole.back().copy().name) == save_of(copy.name);
    if (is_same || above.saves < count) {
      auto whole = check_whole(folder, copy);
      if (whole && above.whole.empty() && best.empty()) best = best_model_of(folder / copy.name);
      if (whole && !is_same) ++above.saves;
      if (whole) {
        above.whole.push_back(std::move(*whole));
      } else {
        notes.not_whole.push_back(copy.name);
      }
      continue;
    }
    const bool is_kept_always = step && keep.every > 0 && *step % keep.every == 0;
    if (is_kept_always || keep.spared.contains(copy.name) || copy.name == best) continue;
    // Now, since another host may have moved a pointer, or could not.
    const auto pointed = names_pointed_at(folder);
    if (pointed && pointed->contains(copy.name)) {
      notes.stays.push_back(printable(copy.name) + " in " + shown_path(folder) +
                            " stays, since `latest` or Megatron's tracker file there leads to it");
      continue;
    }
    RemovedCopy one{copy.name, "keep is " + std::to_string(count) + ", and " +
                                   printable(above.whole.back().copy().name) +
                                   " and those above it are whole"};
    Result<> gone = pointed ? check_deletable(folder / copy.name) : Result<>(pointed.take_error());
    if (gone && notes.on_removal) notes.on_removal(one);
    if (gone) gone = remove_copy({folder, copy.name}, above.whole.front());
    note(gone);
    if (gone) removed.push_back(std::move(one));
  }
  return removed;
}

}  // namespace spark::staging
