// A log for programs that collect it, as those of containers do: one JSON object a line.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"

namespace spark {

// {"time": RFC 3339 UTC, "level": "info", "message": sentence, and the fields that are not empty}, without
// the end of the line.
std::string json_log_line(WallTime time, std::string_view level, std::string_view sentence,
                          const std::vector<std::pair<std::string, std::string>>& fields = {});

}  // namespace spark
