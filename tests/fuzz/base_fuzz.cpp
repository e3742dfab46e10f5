// Text, units and JSON: the first code that sees a config value, a file name or a worker's answer.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/units.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

bool is_harmless(std::string_view text) {
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return false;
  }
  return true;
}

void check_text(std::string_view text) {
  const std::string shown = spark::printable(text);
  require(is_harmless(shown));
  require(spark::printable(shown) == shown);
  require(spark::join(spark::split(text, ','), ",") == text);
  require(spark::trim(spark::trim(text)) == spark::trim(text));
}

void check_units(std::string_view text) {
  if (const auto bytes = spark::parse_bytes(text)) require(!spark::format_bytes(*bytes).empty());
  if (const auto rate = spark::parse_rate(text)) require(*rate > 0);
  if (const auto duration = spark::parse_duration(text)) require(duration->count() >= 0);
  static_cast<void>(spark::parse_optional_duration(text, "never"));
}

void check_json(std::string_view text) {
  const auto value = spark::parse_json(text);
  if (!value) return;
  const auto again = spark::parse_json(spark::pretty(*value));
  require(again.has_value());
  if (value->is_object()) static_cast<void>(spark::error_from_json(value->get_object()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_text(text);
  check_units(text);
  check_json(text);
  return 0;
}
