// Text, units, JSON and paths: the first code that sees a config value, a file name or a worker's answer.
#include <sys/stat.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/access/named_path.hpp"
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

// The same file as the kernel finds, at a path without links. What is in /proc may be gone a moment later.
void check_path(std::string_view text) {
  const std::string path(text.substr(0, text.find('\0')));
  const auto named = spark::open_named(path, spark::Links::Followed);
  if (!named || named->path.starts_with("/proc")) return;
  struct stat by_kernel {
  }, by_path{};
  require(::lstat(named->path.c_str(), &by_path) == 0 && by_path.st_ino == named->info.st_ino);
  if (!path.empty() && ::stat(path.c_str(), &by_kernel) == 0)
    require(by_kernel.st_ino == named->info.st_ino && by_kernel.st_dev == named->info.st_dev);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_text(text);
  check_units(text);
  check_json(text);
  check_path(text);
  return 0;
}
