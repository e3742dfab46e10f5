#include "fleet/fetch/peer_entries.hpp"

#include "staging/copy/resume.hpp"
#include "staging/manifest/manifest_reader.hpp"

namespace spark::fleet {
namespace {

constexpr Bytes kLargestFile = 64 * kTiB;  // as of a source on this host
constexpr Bytes kMostOfAll = 1024 * 1024 * kTiB;

// Whether each entry is in an earlier folder, and each further name belongs to an earlier file: the copy
// relies on both. The entries are sorted.
bool is_tree(const staging::Entries& entries) {
  if (entries.empty()) return false;
  const staging::Entry& root = entries.front();  // a link would make the copy any folder of this host
  if (root.type != staging::EntryType::Folder && root.type != staging::EntryType::File) return false;
  const staging::Entry* folder = nullptr;  // of the entry before: usually also of the next one
  const auto earlier = [&](std::string_view path, std::size_t than) {
    const std::size_t at = staging::index_of(entries, path);
    return at < than ? &entries[at] : nullptr;
  };
  for (std::size_t i = 1; i < entries.size(); ++i) {
    const staging::Entry& entry = entries[i];
    const std::string_view path = entry.path.view();
    const std::size_t slash = path.rfind('/');
    const std::string_view parent = slash == std::string_view::npos ? "" : path.substr(0, slash);
    if (folder == nullptr || folder->path.view() != parent) folder = earlier(parent, i);
    if (folder == nullptr || folder->type != staging::EntryType::Folder) return false;
    if (entry.link_to.view().empty()) continue;
    const staging::Entry* file = earlier(entry.link_to.view(), i);
    if (file == nullptr || !staging::is_content(*file)) return false;
  }
  return true;
}

// Sizes that can be added up, and pieces of them that can be counted.
bool have_possible_sizes(const staging::Entries& entries) {
  Bytes all = 0;
  for (const staging::Entry& entry : entries) {
    if (!staging::is_content(entry)) continue;
    if (entry.size > kLargestFile || entry.size > kMostOfAll - all) return false;
    all += entry.size;
  }
  return true;
}

}  // namespace

Result<staging::Manifest> read_peer_entries(const std::filesystem::path& path, const std::string& peer) {
  auto reader = staging::ManifestReader::open(path);
  if (!reader) return reader.take_error();
  staging::Manifest manifest{reader->header(), {}};
  while (auto entry = reader->next()) manifest.entries.push_back(std::move(*entry));
  if (auto read = reader->error(); !read) return read.take_error();
  if (!is_tree(manifest.entries))
    return fail(Errc::Invalid, "peer " + peer + " sent a list that is no tree of files");
  if (!have_possible_sizes(manifest.entries))
    return fail(Errc::Invalid, "peer " + peer + " sent a list with impossible sizes");
  return manifest;
}

}  // namespace spark::fleet
