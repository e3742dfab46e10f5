#include "daemon/workers/unmounted_folder.hpp"

#include <algorithm>
#include <sstream>
#include <string>

#include "base/file.hpp"
#include "base/text.hpp"

namespace spark::workers {

std::filesystem::path unmounted_on_the_way(std::string_view fstab, const std::vector<mounts::Mount>& table,
                                           const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, error);
  for (const std::string& line : split(fstab, '\n')) {
    std::istringstream columns(line);
    std::string source, point, type, options;
    columns >> source >> point >> type >> options;
    point = decode_octal(point);
    while (point.ends_with('/')) point.pop_back();
    const bool is_ours = is_at_or_below(path.native(), point) || is_at_or_below(real.native(), point);
    if (source.starts_with('#') || !point.starts_with('/') || !is_ours) continue;
    if (mounts::has_option(options, "noauto")) continue;
    const std::filesystem::path there = std::filesystem::canonical(point, error);
    if (error) return point;
    const bool has_another = std::ranges::any_of(table, [&](const mounts::Mount& one) {
      return one.target != there && is_at_or_below(one.target.native(), there.native()) &&
             is_at_or_below(real.native(), one.target.native());
    });  // a mount deeper on the way
    if (!has_another && mounts::mounted_at(table, there) == nullptr) return point;
  }
  return {};
}

std::filesystem::path unmounted_on_the_way(const std::filesystem::path& path) {
  const auto fstab = read_file("/etc/fstab");
  const auto table = mounts::read_mount_table({});
  return fstab && table ? unmounted_on_the_way(*fstab, *table, path) : std::filesystem::path();
}

}  // namespace spark::workers
