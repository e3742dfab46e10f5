#include "staging/copy/verify/model_check.hpp"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "base/text.hpp"
#include "staging/copy/verify/compare_digests.hpp"
#include "staging/copy/verify/sha256.hpp"
#include "staging/manifest/manifest_reader.hpp"
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

std::string pin_of(const std::vector<PublishedDigest>& files, const std::vector<std::string>& sha256,
                   const Entries& entries, std::string_view entry_point) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string_view path = files[i].path;
    const auto entry = std::ranges::lower_bound(
        entries, path, {}, [](const Entry& one) -> std::string_view { return one.path; });
    const Bytes size = entry != entries.end() && entry->path == path ? entry->size : 0;
    const bool is_inside = !entry_point.empty() && path.starts_with(entry_point);
    lines.push_back(sha256[i] + "  " + std::to_string(size) + "  " +
                    std::string(path.substr(is_inside ? entry_point.size() + 1 : 0)) + "\n");
  }
  std::ranges::sort(lines);
  Sha256 all;
  for (const std::string& line : lines) all.add(std::as_bytes(std::span(line)));
  return "sha256:" + all.hex();
}

}  // namespace

Result<std::string> check_model(const CopyOfModel& copy, const ModelRecord& record,
                                const CopyOptions& options, Monitor& monitor, const StopFlag& stop) {
  auto tree = open_tree(copy.data);
  if (!tree) return tree.take_error();
  if (!copy.shown_as.empty()) tree->folder_path = copy.shown_as;  // a copy has no symlinks to follow
  const auto entries = entries_of(copy.manifest);
  if (!entries) return entries.take_error();
  if (record.check != ModelCheck::None) {
    if (auto whole = check_structure(*tree, *entries, stop); !whole) return whole.take_error();
  }
  std::vector<PublishedDigest> files;
  for (const PublishedFile& file : record.digests) {
    if (!file.hex.empty() || !record.expect.empty()) files.push_back({file.path, file.hex, file.told_by});
  }
  if (files.empty()) return std::string();
  const bool has_pin = files.size() == record.digests.size();
  std::vector<std::string> sha256;
  auto same = compare_digests(*tree, files, options, monitor, stop, has_pin ? &sha256 : nullptr);
  if (!same) return same.take_error();
  if (!has_pin) return std::string();
  std::string pin = pin_of(files, sha256, *entries, record.entry_point);
  if (record.expect.empty() || record.expect == pin) return pin;
  return fail(Errc::Mismatch,
              tree->shown(record.entry_point) + " is not the model that 'expect' pins: it is " + pin,
              "choose the revision and the files that were pinned, or pin this one");
}

}  // namespace spark::staging
