#include "tests/histories/copies/world/files.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

namespace spark::histories::copies {

void throw_errno(const std::string& doing) {
  throw std::system_error(errno, std::generic_category(), doing);
}

std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

ino_t inode_of(const std::filesystem::path& file) {
  struct stat info {};
  return ::lstat(file.c_str(), &info) == 0 ? info.st_ino : 0;
}

}  // namespace spark::histories::copies
