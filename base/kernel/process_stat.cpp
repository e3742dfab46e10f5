#include "base/kernel/process_stat.hpp"

namespace spark {

std::optional<ProcessStat> parse_process_stat(std::string_view text) {
  const std::size_t begin = text.find('('), end = text.rfind(')');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return std::nullopt;
  return ProcessStat{std::string(text.substr(begin + 1, end - begin - 1)),
                     split(trim(text.substr(end + 1)), ' ')};
}

Result<ProcessStat> read_process_stat(const SystemRoot& root, const std::string& process) {
  const auto text = read_file(root / ("proc/" + process + "/stat"));
  if (!text) return fail(text.error());
  auto stat = parse_process_stat(*text);
  if (!stat) return fail(Errc::Invalid, "/proc/" + process + "/stat has no program's name");
  return std::move(*stat);
}

std::optional<std::int64_t> boot_time(const SystemRoot& root) {
  const auto text = read_file(root / "proc/stat");
  for (const std::string& line : split(text ? *text : "", '\n')) {
    if (line.starts_with("btime ")) return leading_number<std::int64_t>(std::string_view(line).substr(6));
  }
  return std::nullopt;
}

}  // namespace spark
