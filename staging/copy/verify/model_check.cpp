#include "staging/copy/verify/model_check.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "staging/copy/verify/compare_digests.hpp"
#include "staging/copy/verify/verify.hpp"
#include "staging/manifest/manifest_reader.hpp"
#include "staging/models/model_files.hpp"
#include "staging/models/sha256.hpp"
#include "staging/models/structure.hpp"

namespace spark::staging {
namespace {

// None: it is not there.
const Entry* find_content(const Entries& entries, std::string_view path) {
  const Entry* entry = find_entry(entries, path);
  return entry != nullptr && is_content_of_copy(*entry) ? entry : nullptr;
}

// Files that are read once, for what the manifest and their publisher say of them.
struct Reading {
  std::vector<PublishedDigest> files;
  std::vector<const Entry*> entries;  // of the files
  std::vector<FileSums> sums;
  Result<> published;

  void add(PublishedDigest file, const Entry* entry) {
    files.push_back(std::move(file));
    entries.push_back(entry);
  }
  // Returns those that are not as the manifest says.
  Result<std::vector<std::string>> read(const Tree& tree, const CopyOptions& options, Monitor& monitor,
                                        const StopFlag& stop) {
    published = compare_digests(tree, files, options, monitor, stop, &sums);
    if (!published && published.error().kind != Errc::Mismatch) return fail(published.error());
    std::vector<std::string> differences;
    for (std::size_t i = 0; i < files.size(); ++i)
      if (entries[i] != nullptr && sums[i].content != entries[i]->hash)
        differences.push_back(printable(files[i].path) + " has other content");
    return differences;
  }
};

// What had the SHA-256 that the record says when the earlier copy was made, by path.
std::map<std::string, Digest, std::less<>> known_from(const std::filesystem::path& earlier,
                                                      const ModelRecord& record) {
  std::map<std::string, Digest, std::less<>> known;
  auto reader = ManifestReader::open(earlier);
  const auto then = reader ? parse_model_record(reader->header().model) : std::nullopt;
  if (!then) return known;
  std::set<std::pair<std::string_view, std::string_view>> compared;
  for (const PublishedFile& file : then->digests) compared.emplace(file.path, file.hex);
  for (const PublishedFile& file : record.digests)
    if (file.hex.size() == kSha256Digits && compared.contains({file.path, file.hex}))
      known.emplace(file.path, Digest{});
  while (const auto entry = reader->next())
    if (const auto at = known.find(entry->path.view()); at != known.end()) at->second = entry->hash;
  if (!reader->error()) known.clear();
  return known;
}

Result<> check_structure_of(const Tree& tree, const ModelRecord& record, const Entries& entries,
                            const StopFlag& stop) {
  return record.check == ModelCheck::None ? Result<>() : check_structure(tree, entries, stop);
}

}  // namespace

std::string pin_of(const std::vector<PublishedFile>& files, const std::vector<std::string>& sha256,
                   const Entries& entries, std::string_view entry_point) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string_view path = files[i].path;
    const Entry* entry = find_entry(entries, path);
    const bool is_inside = !entry_point.empty() && path.starts_with(entry_point);
    lines.push_back(sha256[i] + "  " + std::to_string(entry == nullptr ? 0 : entry->size) + "  " +
                    std::string(path.substr(is_inside ? entry_point.size() + 1 : 0)) + "\n");
  }
  std::ranges::sort(lines);
  Sha256 all;
  for (const std::string& line : lines) all.add(std::as_bytes(std::span(line)));
  return "sha256:" + all.hex();
}

Result<> check_pin(const Tree& tree, const ModelRecord& record, const std::string& pin) {
  if (record.expect.empty() || pin.empty() || record.expect == pin) return {};
  return fail(Errc::Mismatch,
              tree.shown(record.entry_point) + " is not the model that 'expect' pins: it is " + pin,
              "choose the revision and the files that were pinned, or pin this one");
}

Result<std::string> check_model(const CopyOfModel& copy, const std::filesystem::path& earlier,
                                const ModelRecord& record, const CopyOptions& options, Monitor& monitor,
                                const StopFlag& stop) {
  auto tree = open_tree(copy.data);
  if (!tree) return tree.take_error();
  if (!copy.shown_as.empty()) tree->folder_path = copy.shown_as;  // a copy has no symlinks to follow
  const auto entries = entries_of(copy.manifest);
  if (!entries) return entries.take_error();
  if (auto whole = check_structure_of(*tree, record, *entries, stop); !whole) return whole.take_error();
  const auto known = known_from(earlier, record);
  Reading reading;
  std::vector<std::string> sha256(record.digests.size());
  std::vector<std::size_t> read;  // indexes of the digests
  for (std::size_t i = 0; i < record.digests.size(); ++i) {
    const PublishedFile& file = record.digests[i];
    const Entry* entry = find_content(*entries, file.path);
    const auto before = known.find(file.path);
    if (entry != nullptr && before != known.end() && before->second == entry->hash) {
      sha256[i] = file.hex;
    } else if (!file.hex.empty() || !record.expect.empty()) {
      read.push_back(i);
      reading.add({file.path, file.hex, file.told_by}, entry);
    }
  }
  if (!reading.files.empty()) {
    // Digests that differ are blamed on the source: first, what was taken over has to be as it was copied.
    auto differences = reading.read(*tree, options, monitor, stop);
    if (!differences) return differences.take_error();
    if (auto equal = check_equal(*tree, std::move(*differences)); !equal) return equal.take_error();
    if (!reading.published) return fail(reading.published.error());
  }
  for (std::size_t i = 0; i < read.size(); ++i) sha256[read[i]] = reading.sums[i].sha256;
  if (record.digests.empty() || std::ranges::count(sha256, "") > 0) return std::string();
  return pin_of(record.digests, sha256, *entries, record.entry_point);
}

Result<VerifiedModel> verify_model(const CopyOfModel& copy, const ModelRecord& record,
                                   const CopyOptions& options, Monitor& monitor, const StopFlag& stop) {
  const auto tree = open_tree(copy.data);
  if (!tree) return tree.take_error();
  auto manifest = ManifestReader::open(copy.manifest);
  if (!manifest) return manifest.take_error();
  const bool has_digests = !record.expect.empty() || record.sha256 + record.git_sha1 > 0;
  const auto entries = entries_of(copy.manifest);
  if (!entries) return entries.take_error();
  VerifiedModel verified;
  if (!has_digests) {
    auto summary = verify_copy(*tree, *manifest, options, monitor, stop);
    if (!summary) return summary.take_error();
    verified.summary = std::move(*summary);
    verified.published = check_structure_of(*tree, record, *entries, stop);
    return verified;
  }
  constexpr std::size_t kMostDifferences = 100;
  auto known = compare_metadata(*tree, *manifest, kMostDifferences, stop);
  if (!known) return known.take_error();
  if (auto equal = check_equal(*tree, *known); !equal) return equal.take_error();
  Reading reading;
  std::set<std::string_view> listed;
  for (const PublishedFile& file : record.digests) {
    listed.insert(file.path);
    reading.add({file.path, file.hex, file.told_by}, find_content(*entries, file.path));
  }
  for (const Entry& entry : *entries)
    if (is_content_of_copy(entry) && !listed.contains(entry.path.view()))
      reading.add({std::string(entry.path.view()), "", ""}, &entry);
  auto differences = reading.read(*tree, options, monitor, stop);
  if (!differences) return differences.take_error();
  known->insert(known->end(), differences->begin(), differences->end());
  if (auto equal = check_equal(*tree, std::move(*known)); !equal) return equal.take_error();
  verified.summary = summary_of(*entries);
  verified.published = std::move(reading.published);
  if (verified.published) verified.published = check_structure_of(*tree, record, *entries, stop);
  std::vector<std::string> sha256;
  for (std::size_t i = 0; i < record.digests.size(); ++i) sha256.push_back(reading.sums[i].sha256);
  if (verified.published)
    verified.published =
        check_pin(*tree, record, pin_of(record.digests, sha256, *entries, record.entry_point));
  return verified;
}

}  // namespace spark::staging
