// Names of datasets and files, made into text and folder names without losing a byte.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace spark::staging {

// For one line of ASCII: bytes outside '!'..'~' and the three of %"\ become %xx. decode_name undoes it; no
// value if `text` is not what encode_name gives.
std::string encode_name(std::string_view raw);
std::optional<std::string> decode_name(std::string_view text);

// A dataset's folder and link name: different datasets, different names; one path component, at most 200
// bytes, never hidden, never a name of the cache's own.
std::string folder_name(std::string_view dataset);

// "." + name + suffix, for a companion of `name` in the same folder; shortened by a hash to fit 255 bytes.
std::string companion_name(std::string_view name, std::string_view suffix);

}  // namespace spark::staging
