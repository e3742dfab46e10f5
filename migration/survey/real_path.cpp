#include "migration/survey/real_path.hpp"

#include <algorithm>
#include <filesystem>

#include "migration/survey/fstab.hpp"

namespace spark::host {
namespace {

constexpr int kMostLinks = 40;  // as the kernel follows

}  // namespace

std::string real_path(const SystemRoot& root, const std::vector<mounts::Mount>& mounts,
                      const std::string& mount) {
  namespace fs = std::filesystem;
  fs::path path = mount;
  if (!path.is_absolute()) return mount;
  for (int links = 0; links < kMostLinks; ++links) {
    fs::path before = "/", next;
    auto part = std::next(path.begin());
    std::error_code error = std::make_error_code(std::errc::invalid_argument);
    for (; error && part != path.end(); ++part) {
      next = before / *part;
      const bool is_mounted = std::any_of(mounts.begin(), mounts.end(),
                                          [&](const mounts::Mount& known) { return known.target == next; });
      if (is_mounted) return path;
      const fs::path link = fs::read_symlink(root / next.relative_path().native(), error);
      next = error ? next : link.is_absolute() ? link : before / link;
      if (error) before = next;
    }
    if (error) return path;
    for (; part != path.end(); ++part) next /= *part;
    path = plain_mount_point(next.native());
  }
  return mount;
}

}  // namespace spark::host
