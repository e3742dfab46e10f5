// Shared by the layouts of models: small files that describe others, and the choice of files.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

inline constexpr std::size_t kSha256Digits = 64, kSha1Digits = 40;
bool is_hex(std::string_view text, std::size_t digits);

bool is_folder(const Tree& tree, const std::string& path);  // not a symlink to one
// No value if the file is not there; Mismatch if it is larger, or no file.
Result<std::optional<std::string>> read_small(const Tree& tree, const std::string& path, std::size_t most);

// `include` of a model: patterns for the path below the model's folder, or the file's name. None means all.
bool matches(const std::vector<std::string>& patterns, const std::string& path);

// Folders below `below` in which nothing is left.
void drop_empty_folders(Entries& entries, const std::string& below);

}  // namespace spark::staging
