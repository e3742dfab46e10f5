#include "staging/copy/source_place.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "staging/files/space.hpp"
#include "staging/manifest/source_identity.hpp"

namespace spark::staging {

Result<> note_file_system(Tree& source) {
  source.is_source = true;
  source.file_system = file_system_of(source.folder.get());
  if (!source.file_system.empty() || is_still_mounted(source.folder.get(), source.folder_path)) return {};
  return fail(Errc::Unavailable, source.shown("") + " was unmounted just when it was opened", "try again");
}

Result<EntryType> most_in(ManifestReader& earlier) {
  if (auto again = earlier.rewind(); !again) return again.take_error();
  EntryType most = EntryType::Folder;
  for (auto entry = earlier.next(); entry && most != EntryType::File; entry = earlier.next())
    if (entry->type != EntryType::Folder) most = entry->type;
  if (auto whole = earlier.error(); !whole) return whole.take_error();
  return most;
}

Result<EntryType> most_in(const std::filesystem::path& manifest) {
  auto earlier = ManifestReader::open(manifest);
  return earlier ? most_in(*earlier) : fail(earlier.error());
}

Result<> check_source_place(const Tree& source, const Walked& walked, const ManifestHeader& then,
                            EntryType had) {
  const char* hint = "mount it again; if it is meant to be so, stage or copy it once with --accept-source";
  const bool has_any = std::ranges::any_of(
      walked.entries, [&](const Entry& entry) { return entry.type == EntryType::File || entry.type == had; });
  if (!has_any) {
    return fail(Errc::Refused,
                source.shown("") + " has become empty: it had " +
                    (had == EntryType::File ? "files" : "files or symbolic links") + " before",
                hint);
  }
  if (then.source != source.root() || !is_other_file_system(then.file_system, source.file_system)) return {};
  return fail(Errc::Refused,
              source.shown("") + " is on another file system than before: " + printable(source.file_system) +
                  " instead of " + printable(then.file_system),
              hint);
}

}  // namespace spark::staging
