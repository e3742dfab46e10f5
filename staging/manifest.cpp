#include "staging/manifest.hpp"

#include <algorithm>

#include "base/file.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "staging/entry_line.hpp"
#include "staging/names.hpp"

namespace spark::staging {
namespace {

constexpr std::int64_t kFormat = 1;
constexpr std::string_view kSealStart = "{\"seal\":\"";
constexpr std::size_t kLargest = std::size_t{8} << 30;

std::string digest_of(std::string_view text) {
  Hasher hasher;
  hasher.add(text);
  return to_hex(hasher.digest());
}

std::string header_of(const Manifest& manifest) {
  const json::object header = {{"spark_stage_manifest", kFormat},
                               {"dataset", encode_name(manifest.dataset)},
                               {"source", encode_name(manifest.source)},
                               {"root_inode", manifest.root.inode},
                               {"root_birth_ns", manifest.root.birth_ns}};
  return json::serialize(header);
}

std::string seal_of(std::string_view body) {
  return std::string(kSealStart) + digest_of(body) + "\"}\n";
}

tl::unexpected<Error> unsealed() {
  return fail(Errc::Mismatch, "the manifest is not sealed by its own hash",
              "it was cut short or changed; stage the dataset again");
}

// The lines before the seal, if the seal is theirs.
std::optional<std::string_view> sealed_body(std::string_view text) {
  const std::size_t seal = text.rfind(kSealStart);
  if (seal == std::string_view::npos) return std::nullopt;
  const std::string_view body = text.substr(0, seal);
  if (text.substr(seal) != seal_of(body)) return std::nullopt;
  return body;
}

std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

Result<Manifest> parse_header(std::string_view line) {
  auto header = parse_json_object(line);
  if (!header) return tl::unexpected<Error>(std::move(header.error()));
  if (get_int(*header, "spark_stage_manifest") != kFormat) {
    return fail(Errc::Unsupported, "the manifest was written by another version of spark-stage",
                "stage the dataset again");
  }
  Manifest manifest;
  auto dataset = decode_name(get_string(*header, "dataset").value_or(""));
  auto source = decode_name(get_string(*header, "source").value_or(""));
  const json::value* inode = header->if_contains("root_inode");
  boost::system::error_code error;
  if (inode != nullptr) manifest.root.inode = inode->to_number<std::uint64_t>(error);
  if (!dataset || !source || inode == nullptr || error) {
    return fail(Errc::Invalid, "the manifest's header is not whole");
  }
  manifest.dataset = std::move(*dataset);
  manifest.source = std::move(*source);
  manifest.root.birth_ns = get_int(*header, "root_birth_ns").value_or(0);
  return manifest;
}

}  // namespace

bool is_same_source(const Entry& then, const Entry& now) {
  if (then.path != now.path || then.type != now.type || then.link_to != now.link_to) return false;
  if (then.mode != now.mode || then.uid != now.uid || then.gid != now.gid) return false;
  if (then.type == EntryType::Folder) return true;
  if (then.type == EntryType::Symlink) return then.target == now.target;
  return then.size == now.size && then.mtime_ns == now.mtime_ns && then.ctime_ns == now.ctime_ns &&
         then.inode == now.inode;
}

bool is_same_source(const Manifest& then, const std::vector<Entry>& now) {
  return std::ranges::equal(then.entries, now,
                            [](const Entry& a, const Entry& b) { return is_same_source(a, b); });
}

Bytes Manifest::bytes() const {
  Bytes sum = 0;
  for (const Entry& entry : entries) {
    if (entry.type == EntryType::File && entry.link_to.empty()) sum += entry.size;
  }
  return sum;
}

Bytes Manifest::allocated() const {
  Bytes sum = 0;
  for (const Entry& entry : entries) {
    if (entry.link_to.empty()) sum += entry.allocated;
  }
  return sum;
}

std::uint64_t Manifest::files() const {
  return static_cast<std::uint64_t>(std::ranges::count(entries, EntryType::File, &Entry::type));
}

std::string Manifest::hash() const {
  Hasher hasher;
  const auto add_text = [&](std::string_view text) {
    hasher.add_number(text.size());
    hasher.add(text);
  };
  for (const Entry& entry : entries) {
    add_text(entry.path);
    hasher.add_number(static_cast<std::uint64_t>(entry.type));
    hasher.add_number(entry.type == EntryType::File ? entry.size : 0);
    hasher.add_number(entry.mode);
    add_text(entry.target);
    hasher.add_number(entry.hash.high);
    hasher.add_number(entry.hash.low);
  }
  return to_hex(hasher.digest());
}

std::string to_text(const Manifest& manifest) {
  std::string text = header_of(manifest) + "\n";
  for (const Entry& entry : manifest.entries) (text += to_line(entry)) += "\n";
  return text + seal_of(text);
}

Result<Manifest> parse_manifest(std::string_view text) {
  auto body = sealed_body(text);
  if (!body) return unsealed();
  auto manifest = parse_header(take_line(*body));
  if (!manifest) return manifest;
  while (!body->empty()) {
    auto entry = parse_entry(take_line(*body));
    if (!entry) return fail_with(std::move(entry.error()), "the manifest");
    if (!manifest->entries.empty() && entry->path <= manifest->entries.back().path) {
      return fail(Errc::Invalid, "the manifest's entries are not in order");
    }
    manifest->entries.push_back(std::move(*entry));
  }
  if (manifest->entries.empty() || !manifest->entries.front().path.empty()) {
    return fail(Errc::Invalid, "the manifest has no root");
  }
  return manifest;
}

Result<> write_manifest(const std::filesystem::path& path, const Manifest& manifest) {
  return write_file_atomically(path, to_text(manifest), 0600);
}

Result<Manifest> read_manifest(const std::filesystem::path& path) {
  const auto text = read_file(path, kLargest);
  if (!text) return tl::unexpected<Error>(text.error());
  auto manifest = parse_manifest(*text);
  if (!manifest) return fail_with(std::move(manifest.error()), "reading " + printable(path.native()));
  return manifest;
}

}  // namespace spark::staging
