#include "staging/copy/transfer/copy_notes.hpp"

#include "base/text.hpp"

namespace spark::staging {

void CopyNotes::add(Kind kind, const Entry& entry) {
  const std::scoped_lock lock(mutex_);
  Count& count = counts_[static_cast<std::size_t>(kind)];
  if (count.number++ == 0) count.first = entry.path.empty() ? "the root" : printable(entry.path);
}

std::string CopyNotes::Count::text() const {
  return number == 1 ? first : first + " and " + std::to_string(number - 1) + " more";
}

std::vector<std::string> CopyNotes::warnings() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> all;
  const auto say = [&](Kind kind, const char* before, const char* after) {
    const Count& count = counts_[static_cast<std::size_t>(kind)];
    if (count.number > 0) all.push_back(before + count.text() + after);
  };
  say(Kind::LostAttributes, "extended attributes or ACLs of ",
      " were not kept: the destination does not take them");
  say(Kind::OtherTime, "modification times of ",
      " were not kept: the destination's file system begins later or ends earlier");
  say(Kind::IsApart, "hard links were not kept, and names became files of their own: ",
      "; the destination takes no more links to one file");
  say(Kind::LfsPointer,
      "Git LFS pointers are in the source in the place of files: ", "; `git lfs pull` there gets the files");
  say(Kind::ChangedFolder, "files came or went in ",
      " while it was copied: the copy has the files that were there at the start");
  return all;
}

}  // namespace spark::staging
