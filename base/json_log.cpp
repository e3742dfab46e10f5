#include "base/json_log.hpp"

#include "base/json.hpp"

namespace spark {

std::string json_log_line(WallTime time, std::string_view level, std::string_view sentence,
                          const std::vector<std::pair<std::string, std::string>>& fields) {
  json::object line{{"time", rfc3339(time)}, {"level", level}, {"message", sentence}};
  for (const auto& [name, value] : fields) {
    if (!value.empty()) line[name] = value;
  }
  return json::serialize(line);
}

}  // namespace spark
