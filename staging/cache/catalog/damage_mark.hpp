// A mark beside a generation that is not known to be right, so that a rebuilt catalog knows it too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/result.hpp"

namespace spark::staging {

// `folder` holds the dataset's generations. The damage that was found; empty if it was found in another copy
// of the dataset. No value if there is no mark.
Result<std::optional<std::string>> damage_mark(const std::filesystem::path& folder, std::uint64_t generation);
Result<> set_damage_mark(const std::filesystem::path& folder, std::uint64_t generation,
                         const std::string& damage);
Result<> drop_damage_mark(const std::filesystem::path& folder, std::uint64_t generation);

}  // namespace spark::staging
