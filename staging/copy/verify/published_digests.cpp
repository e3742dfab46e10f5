#include "staging/copy/verify/published_digests.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"
#include "staging/files/lfs_pointer.hpp"
#include "staging/models/head.hpp"
#include "staging/models/sums.hpp"

namespace spark::staging {
namespace {

constexpr Bytes kLargestSumsFile = 64 * kMiB;
constexpr Bytes kLargestMetadata = 64 * kKiB;
constexpr std::string_view kHubFolder = ".cache/huggingface/download/";
constexpr std::string_view kHubSuffix = ".metadata";

class Collect {
 public:
  explicit Collect(const Tree& copy) : copy_(copy) {}

  Result<> look_at(const Entry& entry) {
    const std::string_view path = entry.path;
    if (is_sums_file(path)) return take_sums(path, entry.size);
    if (const auto downloaded = downloaded_file(path)) return take_metadata(path, *downloaded, entry.size);
    if (is_sha256(name_of(path)) && is_named_by_digest(path)) add(path, name_of(path), path);
    return {};
  }

  // A clone without git-lfs has pointers in the place of the files.
  Result<> look_for_pointer(const Entry& entry) {
    if (entry.size < kSmallestPointer || entry.size > kLargestPointer || is_sums_file(entry.path)) return {};
    const auto text = read(entry.path, entry.size, kLargestPointer);
    if (!text) return text.take_error();
    const auto hex = lfs_pointer(*text);
    if (hex) add(entry.path, std::string(*hex), "the file that it is a Git LFS pointer to");
    return {};
  }

  std::vector<PublishedDigest> all;

 private:
  const Tree& copy_;

  void add(std::string_view path, std::string_view hex, std::string_view told_by) {
    all.push_back({std::string(path), lower(hex), std::string(told_by)});
  }

  static bool is_named_by_digest(std::string_view path) {
    const std::string_view folder = folder_of(path);
    return folder == "blobs/" || folder.ends_with("/blobs/") ||
           folder.find("lfs/objects/") != std::string_view::npos;
  }

  // "a/.cache/huggingface/download/b/c.metadata" is about "a/b/c".
  static std::optional<std::string> downloaded_file(std::string_view path) {
    const std::size_t at = path.find(kHubFolder);
    const bool is_there = at == 0 || (at != std::string_view::npos && path[at - 1] == '/');
    if (!is_there || !path.ends_with(kHubSuffix)) return std::nullopt;
    std::string_view inner = path.substr(at + kHubFolder.size());
    inner.remove_suffix(std::min(inner.size(), kHubSuffix.size()));
    return std::string(path.substr(0, at)) + std::string(inner);
  }

  Result<> take_sums(std::string_view path, Bytes size) {
    const auto text = read(path, size, kLargestSumsFile);
    if (!text) return text.take_error();
    const std::string folder(folder_of(path));
    for (const SumLine& sum : parse_sums(*text, path)) add(folder + sum.name, sum.sha256, path);
    return {};
  }

  // Its lines: the commit, the ETag, the time of the download. The ETag of a small file is no SHA-256.
  Result<> take_metadata(std::string_view path, const std::string& about, Bytes size) {
    const auto text = read(path, size, kLargestMetadata);
    if (!text) return text.take_error();
    const auto lines = split(*text, '\n');
    if (lines.size() >= 2 && is_sha256(trim(lines[1]))) add(about, trim(lines[1]), path);
    return {};
  }

  Result<std::string> read(std::string_view path, Bytes size, Bytes most) const {
    if (size > most)
      return fail(Errc::Unsupported, "reading " + copy_.shown(path) + ": too large for a file of digests");
    const UniqueFd file = open_beneath(copy_, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    if (!file) return copy_.failed(errno, "reading", path);
    auto text = bytes_of_file(file.get(), size).read(0, size);
    return text ? Result<std::string>(std::move(*text)) : copy_.failed(errno, "reading", path);
  }
};

tl::unexpected<Error> none_in(const Tree& tree) {
  return fail(
      Errc::NotFound, "no file in " + tree.shown("") + " has a published SHA-256 to check",
      "looked for: SHA256SUMS and *.sha256 files, Hugging Face's blobs and metadata, Git LFS objects");
}

}  // namespace

Result<std::vector<PublishedDigest>> published_digests(const Tree& copy, ManifestReader& manifest) {
  Collect collect(copy);
  while (const auto entry = manifest.next()) {
    if (entry->type != EntryType::File) continue;
    if (auto looked = collect.look_at(*entry); !looked) return looked.take_error();
    if (auto looked = collect.look_for_pointer(*entry); !looked) return looked.take_error();
  }
  if (auto whole = manifest.error(); !whole) return whole.take_error();
  if (collect.all.empty()) return none_in(copy);
  return std::move(collect.all);
}

Result<> require_published_digests(const Tree& tree, const Entries& entries) {
  Collect collect(tree);
  // Each small file may be a pointer, and would be opened: only if no name tells of digests.
  for (const auto look : {&Collect::look_at, &Collect::look_for_pointer}) {
    for (const Entry& entry : entries) {
      if (entry.type != EntryType::File) continue;
      if (auto looked = (collect.*look)(entry); !looked) return looked;
      if (!collect.all.empty()) return {};
    }
  }
  return none_in(tree);
}

}  // namespace spark::staging
