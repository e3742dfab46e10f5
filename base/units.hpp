// Sizes, rates and durations as people write and read them: in the configuration, the CLI and messages.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace spark {

using Bytes = std::uint64_t;
inline constexpr Bytes kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB, kTiB = 1024 * kGiB;

// To multiples of a block.
constexpr Bytes round_down(Bytes value, Bytes to) {
  return value - value % to;
}
constexpr Bytes rounded_up(Bytes value, Bytes to) {
  return round_down(value + to - 1, to);
}

using Duration = std::chrono::milliseconds;

// "2TiB", "1.5 GB", "4096": KiB MiB GiB TiB are powers of 1024, kB MB GB TB of 1000, none is bytes.
Result<Bytes> parse_bytes(std::string_view text);
// "3.2GB/s" or "3.2GB": bytes per second.
Result<Bytes> parse_rate(std::string_view text);
// As parse_rate, but of a number alone it asks for a unit: "500" is hardly 500 B/s.
Result<Bytes> parse_rate_with_unit(std::string_view text);
// "250ms", "5s", "2m", "1h", "3d". `never` and `off` are the caller's: see parse_optional_duration.
Result<Duration> parse_duration(std::string_view text);
// As parse_duration; the given word (`never` or `off`) gives no value.
Result<std::optional<Duration>> parse_optional_duration(std::string_view text, std::string_view none_word);

// Decimal, three significant digits: "3.21 GB", "512 B". For people; JSON has plain bytes.
std::string format_bytes(Bytes bytes);
std::string format_rate(double bytes_per_second);
// "1 h 05 min", "2 min 10 s", "3.4 s", "250 ms".
std::string format_duration(std::chrono::nanoseconds duration);

}  // namespace spark
