#include "staging/cache/memory/host_memory.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/file.hpp"
#include "staging/files/io/meminfo.hpp"

namespace spark::staging {
namespace {

constexpr std::array<std::string_view, 3> kNames = {"GB10", "DGX_Spark", "DGX Spark"};

bool names_it(const std::filesystem::path& file) {
  const auto text = read_file(file, 64 << 10);
  return text && std::ranges::any_of(
                     kNames, [&](std::string_view name) { return text->find(name) != std::string::npos; });
}

}  // namespace

Bytes page_cache_of_host(const SystemRoot& root) {
  const Bytes cached = read_meminfo(root, "Cached"), shared = read_meminfo(root, "Shmem");
  return cached > shared ? cached - shared : 0;
}

bool gpu_shares_memory(const SystemRoot& root) {
  if (names_it(root / "sys/class/dmi/id/product_name")) return true;
  for (const std::filesystem::path& gpu : list_folder(root / "proc/driver/nvidia/gpus"))
    if (names_it(gpu / "information")) return true;
  return false;
}

}  // namespace spark::staging
