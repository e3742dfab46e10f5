// Whatever the file holds, parse answers; and what it accepts can be shown and read back as the same config.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "daemon/config/parse.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto config = spark::config::parse(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!config) return 0;
  const std::string shown = spark::config::to_yaml(*config);
  const auto again = spark::config::parse(shown, "fuzz");
  if (again && spark::config::to_json(*again) == spark::config::to_json(*config)) return 0;
  std::fprintf(stderr, "%s\n%s\n", shown.c_str(), again ? "differs" : again.error().message().c_str());
  std::abort();
}
