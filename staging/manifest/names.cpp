#include "staging/manifest/names.hpp"

#include <algorithm>
#include <span>

#include "base/text.hpp"
#include "staging/manifest/hash.hpp"

namespace spark::staging {
namespace {

constexpr std::size_t kLongestFolderName = 200, kLongestFileName = 255;

void append_escaped(std::string& text, char c) {
  text += '%' + hex_of(std::as_bytes(std::span(&c, 1)));
}

bool is_plain(char c) {
  return c > ' ' && c <= '~' && c != '%' && c != '"' && c != '\\';
}

bool is_safe_in_folder_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '-';
}

std::string hash_of(std::string_view name) {
  return to_hex(digest_of(name));
}

}  // namespace

std::string encode_name(std::string_view raw) {
  std::string text;
  text.reserve(raw.size());
  for (const char c : raw) {
    if (is_plain(c)) {
      text += c;
    } else {
      append_escaped(text, c);
    }
  }
  return text;
}

std::optional<std::string> decode_name(std::string_view text) {
  std::string raw;
  raw.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      if (!is_plain(text[i])) return std::nullopt;
      raw += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const std::size_t high = kHexDigits.find(text[i + 1]), low = kHexDigits.find(text[i + 2]);
    if (high == kHexDigits.npos || low == kHexDigits.npos) return std::nullopt;
    const char byte = static_cast<char>(high << 4 | low);
    if (is_plain(byte)) return std::nullopt;
    raw += byte;
    i += 2;
  }
  return raw;
}

bool is_safe_path(std::string_view path) {
  if (path.empty()) return true;
  if (path.find('\0') != std::string_view::npos) return false;
  return std::ranges::none_of(
      split(path, '/'), [](const std::string& part) { return part.empty() || part == "." || part == ".."; });
}

std::string folder_name(std::string_view dataset) {
  std::string name;
  for (const char c : dataset) {
    const bool is_hidden = c == '.' && name.empty();
    if (is_safe_in_folder_name(c) && !is_hidden) {
      name += c;
    } else {
      append_escaped(name, c);
    }
  }
  if (name == "data") return "%64ata";  // the cache's own folder
  if (name.empty()) return "%-";
  if (name.size() <= kLongestFolderName) return name;
  // "%-" can't come from a dataset's own name: its % becomes %25.
  return name.substr(0, kLongestFolderName - 34) + "%-" + hash_of(dataset);
}

std::optional<std::string> dataset_of_folder(std::string_view name) {
  std::string dataset;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (name[i] != '%') {
      dataset += name[i];
      continue;
    }
    if (i + 2 >= name.size()) return std::nullopt;
    const std::size_t high = kHexDigits.find(name[i + 1]), low = kHexDigits.find(name[i + 2]);
    if (high == kHexDigits.npos || low == kHexDigits.npos) return std::nullopt;
    dataset += static_cast<char>(high << 4 | low);
    i += 2;
  }
  return folder_name(dataset) == name ? std::optional(std::move(dataset)) : std::nullopt;
}

std::string companion_name(std::string_view name, std::string_view suffix) {
  const std::size_t room = kLongestFileName - 1 - suffix.size();
  std::string stem(name);
  if (stem.size() > room) stem = stem.substr(0, room - 34) + "%-" + hash_of(name);
  return "." + stem + std::string(suffix);
}

}  // namespace spark::staging
