#include "tests/histories/copies/host/files.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <system_error>

#include "base/file.hpp"

namespace spark::histories::copies {

void throw_errno(const std::string& doing) {
  throw std::system_error(errno, std::generic_category(), doing);
}

std::string bytes_of(const std::filesystem::path& file) {
  return read_file(file).value_or("");
}

ino_t inode_of(const std::filesystem::path& file) {
  struct stat info {};
  return ::lstat(file.c_str(), &info) == 0 ? info.st_ino : 0;
}

}  // namespace spark::histories::copies
