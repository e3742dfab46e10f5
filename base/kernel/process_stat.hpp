// /proc/PID/stat, and when the host was started.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"
#include "base/text.hpp"

namespace spark {

struct ProcessStat {
  std::string name;                 // of its program; may contain any character
  std::vector<std::string> fields;  // from the third one, its state, on

  // By its number in proc(5).
  template <class Number>
  std::optional<Number> field(std::size_t number) const {
    return number - 3 < fields.size() ? parse_number<Number>(fields[number - 3]) : std::nullopt;
  }
};

std::optional<ProcessStat> parse_process_stat(std::string_view text);
// `process`: its number, or "self". With ENOENT or ESRCH if there is none.
Result<ProcessStat> read_process_stat(const SystemRoot& root, const std::string& process);

// Seconds since 1970; none if unknown.
std::optional<std::int64_t> boot_time(const SystemRoot& root);

}  // namespace spark
