#include "staging/copy/verify/model_check.hpp"

#include <algorithm>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "staging/copy/verify/compare_digests.hpp"
#include "staging/copy/verify/verify.hpp"
#include "staging/manifest/manifest_reader.hpp"
#include "staging/models/sha256.hpp"
#include "staging/models/structure.hpp"

namespace spark::staging {
namespace {

Result<Entries> entries_of(const std::filesystem::path& manifest) {
  auto reader = ManifestReader::open(manifest);
  if (!reader) return reader.take_error();
  Entries entries;
  while (auto entry = reader->next()) entries.push_back(std::move(*entry));
  if (auto whole = reader->error(); !whole) return whole.take_error();
  return entries;
}

std::string pin_of(const std::vector<PublishedDigest>& files, const std::vector<FileSums>& sums,
                   const Entries& entries, std::string_view entry_point) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string_view path = files[i].path;
    const auto entry = std::ranges::lower_bound(
        entries, path, {}, [](const Entry& one) -> std::string_view { return one.path; });
    const Bytes size = entry != entries.end() && entry->path == path ? entry->size : 0;
    const bool is_inside = !entry_point.empty() && path.starts_with(entry_point);
    lines.push_back(sums[i].sha256 + "  " + std::to_string(size) + "  " +
                    std::string(path.substr(is_inside ? entry_point.size() + 1 : 0)) + "\n");
  }
  std::ranges::sort(lines);
  Sha256 all;
  for (const std::string& line : lines) all.add(std::as_bytes(std::span(line)));
  return "sha256:" + all.hex();
}

Result<> check_structure_of(const Tree& tree, const ModelRecord& record, const Entries& entries,
                            const StopFlag& stop) {
  return record.check == ModelCheck::None ? Result<>() : check_structure(tree, entries, stop);
}

}  // namespace

Result<> check_pin(const Tree& tree, const ModelRecord& record, const std::string& pin) {
  if (record.expect.empty() || pin.empty() || record.expect == pin) return {};
  return fail(Errc::Mismatch,
              tree.shown(record.entry_point) + " is not the model that 'expect' pins: it is " + pin,
              "choose the revision and the files that were pinned, or pin this one");
}

Result<std::string> check_model(const CopyOfModel& copy, const ModelRecord& record,
                                const CopyOptions& options, Monitor& monitor, const StopFlag& stop) {
  auto tree = open_tree(copy.data);
  if (!tree) return tree.take_error();
  if (!copy.shown_as.empty()) tree->folder_path = copy.shown_as;  // a copy has no symlinks to follow
  const auto entries = entries_of(copy.manifest);
  if (!entries) return entries.take_error();
  if (auto whole = check_structure_of(*tree, record, *entries, stop); !whole) return whole.take_error();
  std::vector<PublishedDigest> files;
  for (const PublishedFile& file : record.digests) {
    if (!file.hex.empty() || !record.expect.empty()) files.push_back({file.path, file.hex, file.told_by});
  }
  if (files.empty()) return std::string();
  const bool has_pin = files.size() == record.digests.size();
  std::vector<FileSums> sums;
  auto same = compare_digests(*tree, files, options, monitor, stop, has_pin ? &sums : nullptr);
  if (!same) return same.take_error();
  if (!has_pin) return std::string();
  return pin_of(files, sums, *entries, record.entry_point);
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
  std::vector<PublishedDigest> files;
  std::map<std::string_view, std::size_t> listed;
  for (const PublishedFile& file : record.digests) {
    listed.emplace(file.path, files.size());
    files.push_back({file.path, file.hex, file.told_by});
  }
  const std::size_t of_model = files.size();
  std::vector<const Entry*> read(of_model, nullptr);
  for (const Entry& entry : *entries) {
    if (!is_content_of_copy(entry)) continue;
    if (const auto at = listed.find(entry.path); at != listed.end()) {
      read[at->second] = &entry;
      continue;
    }
    files.push_back({std::string(entry.path.view()), "", ""});
    read.push_back(&entry);
  }
  std::vector<FileSums> sums;
  verified.published = compare_digests(*tree, files, options, monitor, stop, &sums);
  if (!verified.published && verified.published.error().kind != Errc::Mismatch)
    return verified.published.take_error();
  for (std::size_t i = 0; i < files.size(); ++i)
    if (read[i] != nullptr && sums[i].content != read[i]->hash)
      known->push_back(printable(files[i].path) + " has other content");
  if (auto equal = check_equal(*tree, std::move(*known)); !equal) return equal.take_error();
  verified.summary = summary_of(*entries);
  files.resize(of_model);
  if (verified.published) verified.published = check_structure_of(*tree, record, *entries, stop);
  if (verified.published)
    verified.published = check_pin(*tree, record, pin_of(files, sums, *entries, record.entry_point));
  return verified;
}

}  // namespace spark::staging
