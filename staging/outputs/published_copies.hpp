// The copies that stage-out has published in a folder of a volume: each is complete, and has its manifest
// beside it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "staging/checkpoints/checkpoint.hpp"
#include "staging/checkpoints/completeness.hpp"
#include "staging/copy/copy.hpp"
#include "staging/copy/partial/publish.hpp"
#include "staging/files/tree.hpp"

namespace spark::staging {

// The other entries of such a folder.
struct NotListed {
  std::vector<UnreadableCopy> unreadable;  // with manifests that can't be read
  std::vector<std::string> unknown;        // without one that counts: a person may have copied them
};

// None if nothing was published there, or nothing that is_trusted(). After a crash between the two renames of
// a publishing, the manifest is that in the partial folder.
Result<std::optional<ManifestReader>> manifest_of_published(const Destination& destination);

// The latest first, by the time of its source. Entries without a manifest of their own are not listed. If a
// manifest can't be read, the newest copy might be missing from the list: an error, unless the caller wants
// those too. So is one of which nothing has the name while it is replaced.
Result<std::vector<PublishedCopy>> published_copies(const std::filesystem::path& folder,
                                                    NotListed* not_listed = nullptr);

// The highest first (is_above). With the rule of an output: only those that are checkpoints by their names
// (kind_of) and had that name when they were sent, since a person may have sent anything into its folder.
Result<std::vector<PublishedCopy>> published_checkpoints(
    const std::filesystem::path& folder, const std::optional<Completeness>& rule = std::nullopt,
    NotListed* not_listed = nullptr);

// Proof that a published copy is whole: everything that its manifest lists is there, with its sizes, whatever
// was added or done to its permissions since. Only check_whole makes one.
class WholeCopy {
 public:
  const PublishedCopy& copy() const { return copy_; }

 private:
  friend std::optional<WholeCopy> check_whole(const std::filesystem::path& folder, const PublishedCopy& copy);
  explicit WholeCopy(PublishedCopy copy) : copy_(std::move(copy)) {}
  PublishedCopy copy_;
};
std::optional<WholeCopy> check_whole(const std::filesystem::path& folder, const PublishedCopy& copy);

struct Keep {
  std::size_t count = 1;                            // saves (save_of) with whole copies, of each form_of
  std::uint64_t every = 0;                          // steps that are a multiple of it stay; 0 means none
  std::set<std::string> spared = {};                // these stay as well
  std::optional<Completeness> rule = std::nullopt;  // of an output; see published_checkpoints
};
struct RemovedCopy {
  std::string name, because;  // `because`: a sentence
};
struct PruneNotes {
  std::vector<std::string> not_whole;  // those that don't count, as they lack something: older ones stay
  std::vector<std::string> unproven;   // a sentence for each rest that stays for want of proof (OwnRest)
  std::vector<std::string> stays;      // a sentence for each copy that a pointer leads to
  std::optional<Error> failure;        // the first, of a copy that could not be deleted, or of remains
  // Called right before a copy is deleted: a process that is killed meanwhile has said so.
  std::function<void(const RemovedCopy&)> on_removal;
};

// Deletes published copies that are not to be kept: only below `count` whole ones of their series, and never
// what a pointer leads to (names_pointed_at), nor the best model that the highest one names, nor one whose
// manifest can't be read. A copy disappears by one rename before any of it is deleted. Also deletes the
// remains of an interrupted call. One that can't be deleted keeps no other one from it (PruneNotes::failure).
Result<std::vector<RemovedCopy>> remove_older_copies(const std::filesystem::path& folder, const Keep& keep,
                                                     PruneNotes& notes);

// The hash of the set from its manifest. None if `tree` is not published, or was changed since, judged by
// names, sizes and permissions: NFS servers may change files' times.
std::optional<std::string> published_hash(const Tree& tree, const StopFlag& stop);

// Reads a published copy back and compares it with its manifest. NotFound if nothing is published there;
// Mismatch if it differs.
Result<CopyReport> verify_published(const std::filesystem::path& path, const CopyOptions& options,
                                    const ProgressSink& progress, const StopFlag& stop);

}  // namespace spark::staging
