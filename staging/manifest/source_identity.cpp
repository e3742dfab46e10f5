#include "staging/manifest/source_identity.hpp"

#include <algorithm>

namespace spark::staging {

std::chrono::nanoseconds unsettled_for(std::int64_t ctime_ns, std::chrono::nanoseconds seen_for) {
  constexpr std::int64_t kSecond = 1'000'000'000, kTick = 20'000'000;
  const std::int64_t step = ctime_ns % kSecond == 0 ? 2 * kSecond : kTick;
  return std::chrono::nanoseconds(step) - seen_for;
}

bool is_other_file_system(std::string_view then, std::string_view now) {
  if (then.empty() || now.empty()) return false;
  const auto type_of = [](std::string_view name) { return name.substr(0, name.find(' ')); };
  if (type_of(then) != type_of(now)) return true;
  return then.substr(0, then.find(':')) == now.substr(0, now.find(':')) && then != now;
}

}  // namespace spark::staging
