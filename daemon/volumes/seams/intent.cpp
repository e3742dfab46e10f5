#include "daemon/volumes/seams/intent.hpp"

namespace spark::volumes {

json::object to_json(const Intent& intent) {
  if (intent.up) return {{"wanted", "up"}};
  const auto since = std::chrono::duration_cast<std::chrono::milliseconds>(intent.since.time_since_epoch());
  return {
      {"wanted", "down"}, {"since_ms", since.count()}, {"by", intent.by}, {"released", intent.is_released}};
}

Result<Intent> intent_from_json(const json::object& object) {
  const std::string wanted = get_text(object, "wanted");
  if (wanted == "up") return Intent{};
  if (wanted != "down") return fail(Errc::Invalid, "it says neither up nor down");
  return Intent{false, WallTime(std::chrono::milliseconds(get_int(object, "since_ms").value_or(0))),
                get_text(object, "by"), get_bool(object, "released").value_or(false)};
}

}  // namespace spark::volumes
