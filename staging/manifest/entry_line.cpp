#include "staging/manifest/entry_line.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#include "base/json.hpp"
#include "base/text.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {
namespace {

constexpr std::array<std::pair<EntryType, std::string_view>, 3> kTypes = {
    {{EntryType::File, "file"}, {EntryType::Folder, "folder"}, {EntryType::Symlink, "symlink"}}};

std::optional<std::string> get_name(const json::object& object, std::string_view key) {
  const auto text = get_string(object, key);
  if (!text) return std::string();
  return decode_name(*text);
}

std::optional<EntryType> get_type(const json::object& object) {
  const auto name = get_string(object, "type");
  for (const auto& [type, word] : kTypes) {
    if (name == word) return type;
  }
  return std::nullopt;
}

template <class Number>
bool get_number(const json::object& object, std::string_view key, Number& number) {
  const auto value = get_int(object, key);
  if (!value) return false;
  if constexpr (std::is_unsigned_v<Number>) {
    if (*value < 0 || static_cast<std::uint64_t>(*value) > std::numeric_limits<Number>::max()) return false;
  }
  number = static_cast<Number>(*value);
  return true;
}

// Inode numbers use all 64 bits.
bool get_inode(const json::object& object, std::uint64_t& number) {
  const json::value* value = object.if_contains("inode");
  if (value == nullptr) return false;
  boost::system::error_code error;
  number = value->to_number<std::uint64_t>(error);
  return !error;
}

std::optional<Entry> entry_of(const json::object& object) {
  Entry entry;
  const auto type = get_type(object);
  auto path = get_name(object, "path"), target = get_name(object, "target"),
       link_to = get_name(object, "link_to");
  if (!type || !path || !target || !link_to || !is_safe_path(*path) || !is_safe_path(*link_to) ||
      target->find('\0') != std::string::npos) {
    return std::nullopt;
  }
  entry.type = *type;
  entry.path = *path;
  entry.target = *target;
  entry.link_to = *link_to;
  if (const auto hex = get_string(object, "hash"); entry.type == EntryType::File) {
    const auto digest = digest_from_hex(hex.value_or(""));
    if (!digest) return std::nullopt;
    entry.hash = *digest;
  }
  const bool whole = get_number(object, "mode", entry.mode) && get_number(object, "uid", entry.uid) &&
                     get_number(object, "gid", entry.gid) && get_number(object, "mtime_ns", entry.mtime_ns) &&
                     get_number(object, "ctime_ns", entry.ctime_ns) && get_inode(object, entry.inode) &&
                     get_number(object, "size", entry.size) &&
                     get_number(object, "allocated", entry.allocated);
  if (!whole || entry.mode > 07777) return std::nullopt;
  entry.lost_attributes = get_bool(object, "lost_attributes").value_or(false);
  entry.is_apart = !entry.link_to.empty() && get_bool(object, "apart").value_or(false);
  if (object.contains("good_at") && !get_number(object, "good_at", entry.good_at)) return std::nullopt;
  return entry;
}

void append_member(std::string& line, std::string_view key, std::string_view value) {
  ((line += ",\"") += key) += "\":";
  line += value;
}

}  // namespace

std::string to_line(const Entry& entry) {
  // Formatted without a JSON library: encoded names need no JSON escapes, and a manifest has a line for every
  // file.
  const auto quoted = [](std::string_view text) { return "\"" + std::string(text) + "\""; };
  const auto* type = std::ranges::find(kTypes, entry.type, &std::pair<EntryType, std::string_view>::first);
  std::string line = "{\"path\":" + quoted(encode_name(entry.path));
  append_member(line, "type", quoted(type->second));
  append_member(line, "size", std::to_string(entry.size));
  append_member(line, "allocated", std::to_string(entry.allocated));
  append_member(line, "mode", std::to_string(entry.mode));
  append_member(line, "uid", std::to_string(entry.uid));
  append_member(line, "gid", std::to_string(entry.gid));
  append_member(line, "mtime_ns", std::to_string(entry.mtime_ns));
  append_member(line, "ctime_ns", std::to_string(entry.ctime_ns));
  append_member(line, "inode", std::to_string(entry.inode));
  if (entry.type == EntryType::File) append_member(line, "hash", quoted(to_hex(entry.hash)));
  if (entry.good_at != 0) append_member(line, "good_at", std::to_string(entry.good_at));
  if (entry.lost_attributes) append_member(line, "lost_attributes", "true");
  if (!entry.target.empty()) append_member(line, "target", quoted(encode_name(entry.target)));
  if (!entry.link_to.empty()) append_member(line, "link_to", quoted(encode_name(entry.link_to)));
  if (entry.is_apart) append_member(line, "apart", "true");
  return line + "}";
}

Result<Entry> parse_entry(std::string_view line) {
  auto object = parse_json_object(line);
  if (!object) return object.take_error();
  auto entry = entry_of(*object);
  if (!entry) return fail(Errc::Invalid, "a line was changed after it was written");
  return std::move(*entry);
}

}  // namespace spark::staging
