// Shared by the writer and the reader of manifests.
#pragma once

#include <string>
#include <string_view>

#include "staging/manifest/hash.hpp"

namespace spark::staging {

inline constexpr std::int64_t kManifestFormat = 1;
inline constexpr std::string_view kSealStart = "{\"seal\":\"";

inline std::string seal_of(const Digest& digest_of_lines) {
  return std::string(kSealStart) + to_hex(digest_of_lines) + "\"}\n";
}

}  // namespace spark::staging
