#include "staging/copy/verify/digest_check.hpp"

#include "staging/copy/verify/compare_digests.hpp"
#include "staging/copy/verify/published_digests.hpp"
#include "staging/models/structure.hpp"

namespace spark::staging {

Result<std::uint64_t> check_digests(const std::filesystem::path& copy, const std::filesystem::path& manifest,
                                    const CopyOptions& options, Monitor& monitor, const StopFlag& stop) {
  const auto tree = open_tree(copy);
  return tree ? check_digests(*tree, manifest, options, monitor, stop) : fail(tree.error());
}

Result<std::uint64_t> check_digests(const Tree& tree, const std::filesystem::path& manifest,
                                    const CopyOptions& options, Monitor& monitor, const StopFlag& stop) {
  auto reader = ManifestReader::open(manifest);
  if (!reader) return reader.take_error();
  const auto digests = published_digests(tree, *reader);
  if (!digests) return digests.take_error();
  if (auto same = compare_digests(tree, *digests, options, monitor, stop); !same) return same.take_error();
  const auto entries = entries_of(manifest);
  if (!entries) return entries.take_error();
  if (auto whole = check_structure(tree, *entries, stop); !whole) return whole.take_error();
  return digests->size();
}

}  // namespace spark::staging
