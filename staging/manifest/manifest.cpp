#include "staging/manifest/manifest.hpp"

#include <algorithm>

#include "base/json.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "staging/manifest/entry_line.hpp"
#include "staging/manifest/lines.hpp"
#include "staging/manifest/manifest_reader.hpp"
#include "staging/manifest/manifest_text.hpp"
#include "staging/manifest/names.hpp"
#include "staging/manifest/source_identity.hpp"

namespace spark::staging {
namespace {

Bytes disk_bytes(const Entry& entry, Bytes block) {
  if (entry.type == EntryType::Folder) return std::max(block, rounded_up(entry.allocated, block));
  return entry.type == EntryType::File ? rounded_up(entry.allocated, block) : 0;
}

std::string header_of(const ManifestHeader& manifest) {
  json::object header = {
      {"spark_stage_manifest", kManifestFormat}, {"dataset", encode_name(manifest.dataset)},
      {"source", encode_name(manifest.source)},  {"root_inode", manifest.root.inode},
      {"root_birth_ns", manifest.root.birth_ns}, {"source_generation", manifest.source_generation},
      {"doubtful", manifest.is_doubtful},        {"file_system", manifest.file_system},
      {"origin", encode_name(manifest.origin)},  {"definition", encode_name(manifest.definition)}};
  if (!manifest.model.empty()) header["model"] = encode_name(manifest.model);
  return json::serialize(header);
}

// Passes the text to `add` piece by piece.
template <class Add>
void write_text(const ManifestHeader& manifest, const Entries& entries, Add add) {
  Hasher hasher;
  const auto add_line = [&](const std::string& line) {
    hasher.add(line);
    add(line);
  };
  add_line(header_of(manifest) + "\n");
  for (const Entry& entry : entries) add_line(to_line(entry) + "\n");
  add(seal_of(hasher.digest()));
}

}  // namespace

bool is_content(const Entry& entry) {
  return entry.type == EntryType::File && entry.link_to.empty();
}

bool is_content_of_copy(const Entry& entry) {
  return is_content(entry) || entry.is_apart;
}

std::size_t index_of(const Entries& entries, std::string_view path) {
  const auto found =
      std::ranges::lower_bound(entries, path, {}, [](const Entry& one) { return one.path.view(); });
  const bool is_there = found != entries.end() && found->path.view() == path;
  return is_there ? static_cast<std::size_t>(found - entries.begin()) : entries.size();
}

Entry* find_entry(Entries& entries, std::string_view path) {
  const std::size_t index = index_of(entries, path);
  return index == entries.size() ? nullptr : &entries[index];
}

const Entry* find_entry(const Entries& entries, std::string_view path) {
  const std::size_t index = index_of(entries, path);
  return index == entries.size() ? nullptr : &entries[index];
}

bool is_same_source(const Entry& then, const Entry& now) {
  if (then.path != now.path || then.type != now.type || then.link_to != now.link_to) return false;
  if (then.mode != now.mode || then.uid != now.uid || then.gid != now.gid) return false;
  if (then.type == EntryType::Symlink) return then.target == now.target && then.mtime_ns == now.mtime_ns;
  return then.type == EntryType::Folder || identity_of(then) == identity_of(now);
}

void Footprint::add(const Entry& entry, Bytes block) {
  if (!entry.link_to.empty() && !entry.is_apart) return;
  ++inodes;
  bytes += disk_bytes(entry, block);
}

void Summing::add(const Entry& entry) {
  if (entry.type == EntryType::File) ++sum_.files;
  if (entry.type == EntryType::File && entry.link_to.empty()) sum_.bytes += entry.size;
  sum_.footprint.add(entry, block_);
  if (entry.good_at != 0 && (sum_.good_at == 0 || entry.good_at < sum_.good_at)) sum_.good_at = entry.good_at;
  const auto add_text = [&](std::string_view text) {
    hasher_.add_number(text.size());
    hasher_.add(text);
  };
  add_text(entry.path);
  hasher_.add_number(static_cast<std::uint64_t>(entry.type));
  hasher_.add_number(entry.type == EntryType::File ? entry.size : 0);
  hasher_.add_number(entry.mode);
  add_text(entry.target);
  hasher_.add_number(entry.hash.high);
  hasher_.add_number(entry.hash.low);
}

Summary Summing::done() {
  sum_.hash = to_hex(hasher_.digest());
  return sum_;
}

Summary summary_of(const Entries& entries, Bytes block) {
  Summing summing(block);
  for (const Entry& entry : entries) summing.add(entry);
  return summing.done();
}

std::string to_text(const Manifest& manifest) {
  std::string text;
  write_text(manifest, manifest.entries, [&](const std::string& line) { text += line; });
  return text;
}

Result<Manifest> parse_manifest(std::string_view text) {
  auto reader = ManifestReader::of(text);
  if (!reader) return reader.take_error();
  auto entries = entries_of(*reader);
  if (!entries) return entries.take_error();
  return Manifest{reader->header(), std::move(*entries)};
}

Result<> write_manifest(const std::filesystem::path& path, const Manifest& manifest, Readers readers) {
  return write_entries(path, manifest, manifest.entries, readers);
}

Result<> write_entries(const std::filesystem::path& path, const ManifestHeader& header,
                       const Entries& entries, Readers readers) {
  auto writer = LineWriter::create(path, readers);
  if (!writer) return writer.take_error();
  write_text(header, entries, [&](const std::string& line) { writer->add(line); });
  return writer->commit();
}

}  // namespace spark::staging
