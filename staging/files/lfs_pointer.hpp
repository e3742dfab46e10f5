// The pointer that a clone of a repository without git-lfs has in the place of a large file.
#pragma once

#include <optional>
#include <string_view>

#include "base/units.hpp"

namespace spark::staging {

inline constexpr Bytes kSmallestPointer = 110, kLargestPointer = 200;

// The SHA-256 of the file that this content is a Git LFS pointer to; none if it is no pointer.
inline std::optional<std::string_view> lfs_pointer(std::string_view content) {
  constexpr std::string_view kLead = "version https://git-lfs.github.com/spec/v1\noid sha256:";
  constexpr std::size_t kHexDigits = 64;
  if (content.size() < kSmallestPointer || content.size() > kLargestPointer || !content.starts_with(kLead))
    return std::nullopt;
  const std::string_view hex = content.substr(kLead.size(), kHexDigits);
  if (hex.find_first_not_of("0123456789abcdef") != std::string_view::npos) return std::nullopt;
  return hex;
}

}  // namespace spark::staging
