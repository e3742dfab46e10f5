#include "staging/copy/verify/further_names.hpp"

#include <fcntl.h>
#include <sys/stat.h>

namespace spark::staging {

bool FurtherNames::is_split(const Entry& entry) {
  if (entry.type != EntryType::File || entry.link_to.empty()) return false;
  const std::string first(entry.link_to.view());
  if (entry.is_apart) {
    files_[first] = file_of(entry.path);  // the names after it are links to this one
    return false;
  }
  const auto [known, is_new] = files_.try_emplace(first);
  if (is_new) known->second = file_of(first);
  const File here = file_of(entry.path);
  return here && known->second && *here != *known->second;
}

FurtherNames::File FurtherNames::file_of(std::string_view path) const {
  const UniqueFd fd = open_beneath(copy_, path, O_PATH | O_NOFOLLOW);
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) return std::nullopt;
  return std::pair(info.st_dev, info.st_ino);
}

}  // namespace spark::staging
