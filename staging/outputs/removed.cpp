#include "staging/outputs/removed.hpp"

#include <fcntl.h>

#include <cerrno>

#include "base/file.hpp"
#include "base/text.hpp"
#include "staging/files/tree.hpp"

namespace spark::staging {

Result<std::vector<std::string>> names_of(const std::filesystem::path& folder) {
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "opening folder " + printable(folder.native()));
  return names_in(std::move(fd), printable(folder.native()));
}

}  // namespace spark::staging
