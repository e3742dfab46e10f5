#include "staging/copy/partial/damage_report.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.hpp"

namespace spark::staging {

void report_damage(const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / kDamageReport;
  const UniqueFd made(::open(file.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
}

bool has_damage_report(const std::filesystem::path& folder) {
  struct stat info {};
  return ::lstat((folder / kDamageReport).c_str(), &info) == 0 || errno != ENOENT;
}

void drop_damage_report(const std::filesystem::path& folder) {
  ::unlink((folder / kDamageReport).c_str());
}

}  // namespace spark::staging
