#include "fleet/adopted/folder_hash.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/json.hpp"
#include "fleet/adopted/reading_notes.hpp"
#include "staging/copy/verify/compare_digests.hpp"
#include "staging/copy/verify/model_check.hpp"
#include "staging/files/metadata.hpp"
#include "staging/manifest/source_identity.hpp"
#include "staging/models/structure.hpp"

namespace spark::fleet {
namespace {

staging::Entry* find(staging::Entries& entries, std::string_view path) {
  const auto found = std::ranges::lower_bound(
      entries, path, {}, [](const staging::Entry& one) -> std::string_view { return one.path.view(); });
  return found != entries.end() && found->path.view() == path ? &*found : nullptr;
}

struct FileOfFolder {
  staging::Entry* entry = nullptr;                    // none: the publisher lists it, and it is not there
  const staging::PublishedFile* published = nullptr;  // none: it is no file of the model
  std::string* sha256 = nullptr;                      // of a file of the model
  bool is_known = false;                              // by an earlier reading
};

std::string published_of(const FileOfFolder& file) {
  return file.published == nullptr ? "" : file.published->hex;
}

// The files of the model first, in the order of their record. The references point to what the arguments
// have.
std::vector<FileOfFolder> files_of(const staging::ModelRecord& record, staging::Entries& entries,
                                   std::vector<std::string>& sha256) {
  std::vector<FileOfFolder> files;
  std::set<std::string_view> listed;
  sha256.resize(record.digests.size());
  for (std::size_t i = 0; i < record.digests.size(); ++i) {
    const staging::PublishedFile& file = record.digests[i];
    listed.insert(file.path);
    files.push_back({find(entries, file.path), &file, &sha256[i]});
  }
  for (staging::Entry& entry : entries)
    if (staging::is_content(entry) && !listed.contains(entry.path.view())) files.push_back({&entry});
  return files;
}

staging::FileToRead to_read(const FileOfFolder& file) {
  if (file.published == nullptr) return {{std::string(file.entry->path.view()), "", ""}, false};
  return {{file.published->path, file.published->hex, file.published->told_by}, true};
}

// Takes over those that are as they were when an interrupted reading read them.
void take_over(const std::filesystem::path& notes, const std::string& of, staging::Entries& entries,
               std::vector<FileOfFolder>& files) {
  std::unordered_map<const staging::Entry*, FileOfFolder*> by_entry;
  read_notes(notes, of, [&](const ReadingNote& note) {
    if (by_entry.empty())
      for (FileOfFolder& file : files) by_entry[file.entry] = &file;
    const auto known = by_entry.find(find(entries, note.entry.path.view()));
    if (known == by_entry.end() || known->first == nullptr) return;
    const FileOfFolder& file = *known->second;
    const bool is_same = staging::identity_of(note.entry) == staging::identity_of(*file.entry) &&
                         note.published == published_of(file) &&
                         note.sha256.empty() == (file.sha256 == nullptr);
    if (!is_same) return;
    file.entry->hash = note.entry.hash;
    file.entry->lost_attributes = note.entry.lost_attributes;
    if (file.sha256 != nullptr) *file.sha256 = note.sha256;
    known->second->is_known = true;
  });
  std::erase_if(files, [](const FileOfFolder& file) { return file.is_known; });
}

// The names of a file with several have the same content.
void hash_further_names(staging::Entries& entries) {
  for (staging::Entry& entry : entries) {
    if (entry.link_to.empty()) continue;
    if (const auto* first = find(entries, entry.link_to.view())) entry.hash = first->hash;
  }
}

Result<> read(const staging::Tree& tree, const std::vector<FileOfFolder>& files, staging::Monitor& monitor,
              const StopFlag& stop, ReadingNotes* notes) {
  staging::FilesToRead all;
  all.count = files.size();
  all.bytes = 0;
  for (const FileOfFolder& file : files) *all.bytes += file.entry == nullptr ? 0 : file.entry->size;
  all.file = [&](std::size_t index) { return to_read(files[index]); };
  all.on_read = [&](std::size_t index, int fd, staging::FileSums sums) {
    const FileOfFolder& file = files[index];
    if (file.entry == nullptr) return;
    file.entry->hash = sums.content;
    file.entry->lost_attributes =
        staging::has_kept_attributes(fd).value_or(true);  // peers don't exchange them
    if (file.sha256 != nullptr) *file.sha256 = sums.sha256;
    if (notes != nullptr && sums.is_as_published)
      notes->add({*file.entry, std::move(sums.sha256), published_of(file)});
  };
  return staging::read_and_compare(tree, all, {}, monitor, stop);
}

}  // namespace

Result<staging::Manifest> hash_folder(const AdoptedFolder& folder, FolderNow now,
                                      const std::filesystem::path& notes, const StopFlag& stop) {
  staging::ModelRecord& record = now.walked.record;
  staging::Manifest manifest;
  manifest.dataset = folder.dataset;
  manifest.source = now.tree.root();
  manifest.file_system = now.tree.file_system;
  manifest.definition = definition_of(folder);
  manifest.entries = std::move(now.walked.walked.entries);
  if (folder.model && record.check != staging::ModelCheck::None)
    if (auto whole = staging::check_structure(now.tree, manifest.entries, stop); !whole)
      return whole.take_error();
  std::vector<std::string> sha256;
  auto files = files_of(record, manifest.entries, sha256);
  const std::string of = json::serialize(json::array{manifest.definition, manifest.file_system});
  take_over(notes, of, manifest.entries, files);
  ReadingNotes noted(notes, of);
  const staging::ProgressSink unseen;
  staging::Monitor monitor(unseen);
  if (auto all = read(now.tree, files, monitor, stop, &noted); !all) return all.take_error();
  hash_further_names(manifest.entries);
  if (!folder.model) return manifest;
  record.pin = staging::pin_of(record.digests, sha256, manifest.entries, record.entry_point);
  if (auto right = staging::check_pin(now.tree, record, record.pin); !right) return right.take_error();
  manifest.model = staging::to_text(record);
  return manifest;
}

Result<> read_content(FolderNow& now, staging::Monitor& monitor, const StopFlag& stop) {
  std::vector<std::string> none;
  staging::Entries& entries = now.walked.walked.entries;
  return read(now.tree, files_of({}, entries, none), monitor, stop, nullptr);
}

}  // namespace spark::fleet
