// The copies that stage-out has published in a folder of a volume: each is complete, and has its manifest
// beside it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "staging/copy/copy.hpp"
#include "staging/copy/partial/publish.hpp"
#include "staging/files/tree.hpp"

namespace spark::staging {

struct PublishedCopy {
  std::string name;
  std::int64_t mtime_ns = 0;  // of its source's root: when the job finished writing it
};

// None if nothing was published there. After a crash between the two renames of a publishing, the manifest is
// that in the partial folder.
Result<std::optional<ManifestReader>> manifest_of_published(const Destination& destination);

// Newest first. Entries without a manifest of their own are not listed. An error if any manifest can't be
// read: the newest copy might be missing from the list.
Result<std::vector<PublishedCopy>> published_copies(const std::filesystem::path& folder);

// Deletes all published copies except the newest `keep` and those in `spared`. A copy disappears by one
// rename before any of it is deleted. Also deletes the remains of an interrupted call. Returns the names
// deleted.
Result<std::vector<std::string>> keep_newest(const std::filesystem::path& folder, std::size_t keep,
                                             const std::set<std::string>& spared);

// The hash of the set from its manifest. None if `tree` is not published, or was changed since, judged by
// names, sizes and permissions: NFS servers may change files' times.
std::optional<std::string> published_hash(const Tree& tree, const StopFlag& stop);

// Reads a published copy back and compares it with its manifest. NotFound if nothing is published there;
// Mismatch if it differs.
Result<CopyReport> verify_published(const std::filesystem::path& path, const CopyOptions& options,
                                    const ProgressSink& progress, const StopFlag& stop);

}  // namespace spark::staging
