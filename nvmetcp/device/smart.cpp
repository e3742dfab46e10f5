#include "nvmetcp/device/smart.hpp"

#include <array>
#include <limits>

namespace spark::nvmetcp {
namespace {

// Bytes of the page.
constexpr std::size_t kWarnings = 0, kTemperature = 1, kSpare = 3, kSpareThreshold = 4, kUsed = 5,
                      kMediaErrors = 160;
constexpr int kKelvin = 273;

constexpr std::array kWarningWords = {
    "spare blocks below the threshold", "too hot or too cold",
    "unreliable after many errors",     "read-only",
    "memory not kept in a power cut",   "persistent memory read-only or unreliable",
};

std::uint64_t number_at(std::span<const std::byte, kSmartLogBytes> page, std::size_t at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value |= std::to_integer<std::uint64_t>(page[at + i]) << 8 * i;
  return value;
}

// 128 bits wide; a larger value becomes the largest number.
std::uint64_t count_at(std::span<const std::byte, kSmartLogBytes> page, std::size_t at) {
  const bool is_huge = number_at(page, at + 8, 8) != 0;
  return is_huge ? std::numeric_limits<std::uint64_t>::max() : number_at(page, at, 8);
}

}  // namespace

Smart decode_smart(std::span<const std::byte, kSmartLogBytes> page) {
  Smart smart;
  const auto warnings = number_at(page, kWarnings, 1);
  for (std::size_t bit = 0; bit < kWarningWords.size(); ++bit) {
    if ((warnings >> bit & 1) != 0) smart.critical.emplace_back(kWarningWords[bit]);
  }
  const auto kelvin = static_cast<int>(number_at(page, kTemperature, 2));
  if (kelvin != 0) smart.temperature_c = kelvin - kKelvin;
  const auto spare = static_cast<unsigned>(number_at(page, kSpare, 1));
  // A drive that measures has a threshold; all zero is a target that does not.
  if (spare != 0 || number_at(page, kSpareThreshold, 1) != 0) smart.spare_percent = spare;
  smart.used_percent = static_cast<unsigned>(number_at(page, kUsed, 1));
  smart.media_errors = count_at(page, kMediaErrors);
  return smart;
}

}  // namespace spark::nvmetcp
