// Conversion of dataset and file names to text and to folder names, without losing a byte.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace spark::staging {

// For one line of ASCII: bytes outside '!'..'~' and the three of %"\ become %xx. decode_name reverses it; no
// value if encode_name could not have produced `text`.
std::string encode_name(std::string_view raw);
std::optional<std::string> decode_name(std::string_view text);

// Relative, without empty, "." or ".." components, so that it names an object below the root; "" is the root.
bool is_safe_path(std::string_view path);

// A dataset's folder and link name: different for different datasets, one path component, at most 200 bytes,
// never hidden, never one of the cache's own names.
std::string folder_name(std::string_view dataset);
// Reverses it; no value for a name that was shortened, or that folder_name() could not have produced.
std::optional<std::string> dataset_of_folder(std::string_view name);

// "." + name + suffix, for a companion of `name` in the same folder; shortened by a hash to fit 255 bytes.
std::string companion_name(std::string_view name, std::string_view suffix);

}  // namespace spark::staging
