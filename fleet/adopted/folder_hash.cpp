#include "fleet/adopted/folder_hash.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
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
// have. `ref`: see look_at; it is not read.
std::vector<FileOfFolder> files_of(const staging::ModelRecord& record, staging::Entries& entries,
                                   std::string_view ref, std::vector<std::string>& sha256) {
  std::vector<FileOfFolder> files;
  std::set<std::string_view> listed;
  sha256.resize(record.digests.size());
  for (std::size_t i = 0; i < record.digests.size(); ++i) {
    const staging::PublishedFile& file = record.digests[i];
    listed.insert(file.path);
    files.push_back({staging::find_entry(entries, file.path), &file, &sha256[i]});
  }
  for (staging::Entry& entry : entries) {
    const std::string_view path = entry.path.view();
    if (staging::is_content(entry) && !listed.contains(path) && (ref.empty() || path != ref))
      files.push_back({&entry});
  }
  return files;
}

staging::FileToRead to_read(const FileOfFolder& file) {
  if (file.published == nullptr) return {{std::string(file.entry->path.view()), "", ""}, false};
  return {{file.published->path, file.published->hex, file.published->told_by}, true};
}

ReadingNote note_of(const FileOfFolder& file) {
  return {*file.entry, file.sha256 == nullptr ? "" : *file.sha256, published_of(file)};
}

// Takes over those that are as they were when an earlier reading read them, and marks them as known.
void take_over(const std::filesystem::path& notes, const std::string& of, staging::Entries& entries,
               std::vector<FileOfFolder>& files) {
  std::unordered_map<const staging::Entry*, FileOfFolder*> by_entry;
  read_notes(notes, of, [&](const ReadingNote& note) {
    if (by_entry.empty())
      for (FileOfFolder& file : files) by_entry[file.entry] = &file;
    const auto known = by_entry.find(staging::find_entry(entries, note.entry.path.view()));
    if (known == by_entry.end() || known->first == nullptr) return;
    FileOfFolder& file = *known->second;
    const bool is_same = staging::identity_of(note.entry) == staging::identity_of(*file.entry) &&
                         note.published == published_of(file) &&
                         note.sha256.empty() == (file.sha256 == nullptr);
    if (!is_same) return;
    file.entry->hash = note.entry.hash;
    if (file.sha256 != nullptr) *file.sha256 = note.sha256;
    file.is_known = true;
  });
}

// The names of a file with several have the same content.
void hash_further_names(staging::Entries& entries) {
  for (staging::Entry& entry : entries) {
    if (entry.link_to.empty()) continue;
    if (const auto* first = staging::find_entry(entries, entry.link_to.view())) entry.hash = first->hash;
  }
}

// `files` and `notes` must live until they are read.
staging::FilesToRead to_read(const std::vector<FileOfFolder>& files, ReadingNotes* notes) {
  staging::FilesToRead all;
  all.count = files.size();
  all.bytes = 0;
  for (const FileOfFolder& file : files) *all.bytes += file.entry == nullptr ? 0 : file.entry->size;
  all.file = [&files](std::size_t index) { return to_read(files[index]); };
  all.on_read = [&files, notes](std::size_t index, int /*fd*/, staging::FileSums sums) {
    const FileOfFolder& file = files[index];
    if (file.entry == nullptr) return;
    file.entry->hash = sums.content;
    if (file.sha256 != nullptr) *file.sha256 = std::move(sums.sha256);
    if (notes != nullptr && sums.is_as_published) notes->add(note_of(file));
  };
  return all;
}

// Before hours of reading: hosts do not exchange them, and a change of them is one of the ctime.
Result<> check_attributes(const staging::Tree& tree, const std::vector<FileOfFolder>& files,
                          const StopFlag& stop) {
  for (const FileOfFolder& file : files) {
    if (stop) return fail(Errc::Cancelled, "reading " + tree.shown("") + ": interrupted");
    if (file.entry == nullptr) continue;
    const UniqueFd fd =
        staging::open_beneath(tree, file.entry->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (!fd) return fail_errno(errno, "opening " + tree.shown(file.entry->path));
    const auto has_some = staging::has_kept_attributes(fd.get());
    if (!has_some) return has_some.take_error();
    if (*has_some)
      return fail(
          Errc::Refused,
          tree.shown(file.entry->path) + " has extended attributes or ACLs, which hosts do not exchange",
          "`getfattr -d` and `getfacl` show them, `setfattr -x` and `setfacl -b` remove them");
  }
  return {};
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
  auto files = files_of(record, manifest.entries, now.walked.ref, sha256);
  if (auto plain = check_attributes(now.tree, files, stop); !plain) return plain.take_error();
  const std::string of = json::serialize(json::array{manifest.definition, manifest.file_system});
  take_over(notes, of, manifest.entries, files);
  ReadingNotes noted(notes, of, [&](const ReadingNotes::Add& add) {
    for (const FileOfFolder& file : files)
      if (file.is_known) add(note_of(file));
  });
  std::erase_if(files, [](const FileOfFolder& file) { return file.is_known; });
  const staging::ProgressSink unseen;
  staging::Monitor monitor(unseen);
  if (auto all = staging::read_and_compare(now.tree, to_read(files, &noted), {}, monitor, stop); !all)
    return all.take_error();
  hash_further_names(manifest.entries);
  if (!folder.model) return manifest;
  record.pin = staging::pin_of(record.digests, sha256, manifest.entries, record.entry_point);
  if (auto right = staging::check_pin(now.tree, record, record.pin); !right) return right.take_error();
  manifest.model = staging::to_text(record);
  return manifest;
}

Result<std::map<std::string, int>> read_content(FolderNow& now, staging::Monitor& monitor,
                                                const StopFlag& stop) {
  std::vector<std::string> none;
  const auto files = files_of({}, now.walked.walked.entries, now.walked.ref, none);
  staging::FilesToRead all = to_read(files, nullptr);
  std::mutex mutex;
  std::map<std::string, int> unreadable;
  all.on_unreadable = [&](std::size_t index, int error) {
    const std::scoped_lock lock(mutex);
    unreadable[std::string(files[index].entry->path.view())] = error;
  };
  auto done = staging::read_and_compare(now.tree, all, {}, monitor, stop);
  // A file that is missing, or is none any more, is a change, which the next look shows.
  if (!done && done.error().kind != Errc::Mismatch) return done.take_error();
  return unreadable;
}

}  // namespace spark::fleet
