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

std::string plain_mount_point(const std::string& mount) {
  std::string path = std::filesystem::path(mount).lexically_normal().native();
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
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
