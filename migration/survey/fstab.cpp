#include "migration/survey/fstab.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>

#include "base/kernel/mount_table.hpp"
#include "base/text.hpp"
#include "migration/survey/words.hpp"
#include "nvmetcp/names.hpp"

namespace spark::host {
namespace {

constexpr int kMostLinks = 40;  // as the kernel follows

}  // namespace

std::string plain_mount_point(const std::string& mount) {
  std::string path = std::filesystem::path(mount).lexically_normal().native();
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

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
      if (std::ranges::find(mounts, next, &mounts::Mount::target) != mounts.end()) return path;
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

bool FstabLine::is_block_device() const {
  constexpr std::array kBegins = {"/dev/", "UUID=", "LABEL=", "PARTUUID=", "PARTLABEL="};
  return std::ranges::any_of(kBegins, [&](const char* begin) { return source.starts_with(begin); });
}

std::vector<FstabLine> parse_fstab(std::string_view text) {
  std::vector<FstabLine> lines;
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    ++number;
    if (trim(line).starts_with('#')) continue;
    const auto columns = fstab_columns(line);
    if (columns.size() < 2) continue;
    const auto column = [&](std::size_t i) { return i < columns.size() ? columns[i] : std::string(); };
    lines.push_back({number, columns[0], plain_mount_point(columns[1]), column(2), column(3),
                     std::atoi(column(5).c_str()), line});
  }
  return lines;
}

OtherLines other_lines_of(const FstabLine& line, const std::vector<FstabLine>& all) {
  OtherLines others;
  for (const FstabLine& other : all) {
    if (other.mount != line.mount || other.number == line.number) continue;
    if (mounts::has_option(other.options, "noauto")) {
      others.on_request.push_back(other.text);
    } else if (others.at_boot == 0) {
      others.at_boot = other.number;
    }
  }
  return others;
}

bool is_kernel_name(std::string_view source) {
  constexpr std::string_view kDev = "/dev/";
  if (!source.starts_with(kDev)) return false;
  std::string_view name = source.substr(kDev.size());
  const std::size_t partition = name.rfind('p');
  const bool has_partition = partition != std::string_view::npos && partition + 1 < name.size() &&
                             name.find_first_not_of("0123456789", partition + 1) == std::string_view::npos;
  if (has_partition) name = name.substr(0, partition);
  return nvmetcp::parse_namespace_name(name).has_value();
}

}  // namespace spark::host
