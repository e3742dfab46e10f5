#include "staging/manifest.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "base/text.hpp"
#include "staging/entry_line.hpp"
#include "staging/lines.hpp"
#include "staging/manifest_reader.hpp"
#include "staging/manifest_text.hpp"
#include "staging/names.hpp"

namespace spark::staging {
namespace {

std::string header_of(const Manifest& manifest) {
  const json::object header = {{"spark_stage_manifest", kManifestFormat},
                               {"dataset", encode_name(manifest.dataset)},
                               {"source", encode_name(manifest.source)},
                               {"root_inode", manifest.root.inode},
                               {"root_birth_ns", manifest.root.birth_ns}};
  return json::serialize(header);
}

// Gives the text to `add` piece by piece.
template <class Add>
void write_text(const Manifest& manifest, Add add) {
  Hasher hasher;
  const auto add_line = [&](const std::string& line) {
    hasher.add(line);
    add(line);
  };
  add_line(header_of(manifest) + "\n");
  for (const Entry& entry : manifest.entries) add_line(to_line(entry) + "\n");
  add(seal_of(hasher.digest()));
}

Result<Manifest> collect(Result<ManifestReader> reader) {
  if (!reader) return tl::unexpected<Error>(std::move(reader.error()));
  Manifest manifest = reader->header();
  while (auto entry = reader->next()) manifest.entries.push_back(std::move(*entry));
  if (auto whole = reader->error(); !whole) return tl::unexpected<Error>(std::move(whole.error()));
  return manifest;
}

}  // namespace

bool is_same_source(const Entry& then, const Entry& now) {
  if (then.path != now.path || then.type != now.type || then.link_to != now.link_to) return false;
  if (then.mode != now.mode || then.uid != now.uid || then.gid != now.gid) return false;
  if (then.mtime_ns != now.mtime_ns || then.ctime_ns != now.ctime_ns || then.inode != now.inode) return false;
  if (then.type == EntryType::Symlink) return then.target == now.target;
  return then.type == EntryType::Folder || then.size == now.size;
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
  std::string text;
  write_text(manifest, [&](const std::string& line) { text += line; });
  return text;
}

Result<Manifest> parse_manifest(std::string_view text) {
  return collect(ManifestReader::of(text));
}

Result<> write_manifest(const std::filesystem::path& path, const Manifest& manifest) {
  auto writer = LineWriter::create(path);
  if (!writer) return tl::unexpected<Error>(std::move(writer.error()));
  write_text(manifest, [&](const std::string& line) { writer->add(line); });
  return writer->commit();
}

Result<Manifest> read_manifest(const std::filesystem::path& path) {
  return collect(ManifestReader::open(path));
}

}  // namespace spark::staging
