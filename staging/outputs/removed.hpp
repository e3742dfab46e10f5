// Names in folders of checkpoints, on this host and on a volume, and the name of a checkpoint that is being
// deleted.
#pragma once

#include <fcntl.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"
#include "base/text.hpp"
#include "staging/files/tree.hpp"

namespace spark::staging {

// Suffix of the name of a checkpoint that is being deleted; the name begins with a dot. The next removal
// completes an interrupted one.
inline constexpr char kRemoved[] = ".spark-removed";

inline Result<std::vector<std::string>> names_of(const std::filesystem::path& folder) {
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "opening folder " + printable(folder.native()));
  return names_in(std::move(fd), printable(folder.native()));
}

}  // namespace spark::staging
