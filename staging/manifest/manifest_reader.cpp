#include "staging/manifest/manifest_reader.hpp"

#include <algorithm>

#include "base/file_system.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "staging/manifest/entry_line.hpp"
#include "staging/manifest/manifest_text.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {
namespace {

tl::unexpected<Error> unsealed() {
  return fail(Errc::Mismatch, "the manifest is not sealed by its own hash",
              "it was cut short or changed; stage the dataset again");
}

// The last line must be the hash of all lines before it.
Result<> check_seal(LineReader& lines) {
  Hasher hasher;
  while (const auto line = lines.next()) {
    if (!line->starts_with(kSealStart)) {
      hasher.add(*line);
      hasher.add(std::string_view("\n"));
      continue;
    }
    const bool is_right = std::string(*line) + "\n" == seal_of(hasher.digest());
    if (is_right && !lines.next()) return lines.error();
    return unsealed();
  }
  if (auto read = lines.error(); !read) return read;
  return unsealed();
}

Result<ManifestHeader> parse_header(std::string_view line) {
  auto header = parse_json_object(line);
  if (!header) return header.take_error();
  if (get_int(*header, "spark_stage_manifest") != kManifestFormat) {
    return fail(Errc::Unsupported, "the manifest was written by another version of spark-stage",
                "stage the dataset again");
  }
  ManifestHeader manifest;
  auto dataset = decode_name(get_text(*header, "dataset"));
  auto source = decode_name(get_text(*header, "source"));
  const json::value* inode = header->if_contains("root_inode");
  boost::system::error_code error;
  if (inode != nullptr) manifest.root.inode = inode->to_number<std::uint64_t>(error);
  if (!dataset || !source || inode == nullptr || error) {
    return fail(Errc::Invalid, "the manifest's header is not whole");
  }
  manifest.dataset = std::move(*dataset);
  manifest.source = std::move(*source);
  manifest.root.birth_ns = get_int(*header, "root_birth_ns").value_or(0);
  const std::int64_t generation = get_int(*header, "source_generation").value_or(0);
  manifest.source_generation = static_cast<std::uint64_t>(std::max<std::int64_t>(0, generation));
  manifest.is_doubtful = get_bool(*header, "doubtful").value_or(false);
  manifest.file_system = get_text(*header, "file_system");
  manifest.origin = decode_name(get_text(*header, "origin")).value_or("");
  manifest.definition = decode_name(get_text(*header, "definition")).value_or("");
  manifest.model = decode_name(get_text(*header, "model")).value_or("");
  return manifest;
}

}  // namespace

Result<ManifestReader> ManifestReader::open(const std::filesystem::path& path) {
  auto lines = LineReader::open(path);
  if (!lines) return lines.take_error();
  ManifestReader reader(std::move(*lines));
  if (auto checked = reader.check(); !checked)
    return fail_with(std::move(checked.error()), "reading " + shown_path(path));
  return reader;
}

Result<ManifestReader> ManifestReader::of(std::string_view text) {
  ManifestReader reader((LineReader(text)));
  if (auto checked = reader.check(); !checked) return checked.take_error();
  return reader;
}

Result<> ManifestReader::check() {
  if (auto sealed = check_seal(lines_); !sealed) return sealed;
  return rewind();
}

Result<> ManifestReader::start() {
  const auto line = lines_.next();
  if (!line) return fail(Errc::Invalid, "the manifest is empty");
  auto header = parse_header(*line);
  if (!header) return header.take_error();
  header_ = std::move(*header);
  return {};
}

std::optional<Entry> ManifestReader::next() {
  const auto line = error_ ? std::nullopt : lines_.next();
  if (!line || line->starts_with(kSealStart)) {
    if (!error_ && !has_root_) error_ = Error{Errc::Invalid, "the manifest has no root", ""};
    return std::nullopt;
  }
  auto entry = parse_entry(*line);
  if (!entry) {
    error_ = std::move(entry.error());
    error_->what = "the manifest: " + error_->what;
    return std::nullopt;
  }
  const bool is_in_order = has_root_ ? std::string_view(entry->path) > last_path_ : entry->path.empty();
  if (!is_in_order) {
    error_ = Error{Errc::Invalid,
                   has_root_ ? "the manifest's entries are not in order" : "the manifest has no root", ""};
    return std::nullopt;
  }
  has_root_ = true;
  last_path_ = entry->path;
  return std::move(*entry);
}

Result<> ManifestReader::error() const {
  if (error_) return fail(*error_);
  return lines_.error();
}

Result<> ManifestReader::rewind() {
  if (auto again = lines_.rewind(); !again) return again;
  last_path_.clear();
  has_root_ = false;
  error_.reset();
  return start();
}

Result<Entries> entries_of(const std::filesystem::path& manifest) {
  auto reader = ManifestReader::open(manifest);
  return reader ? entries_of(*reader) : reader.take_error();
}

Result<Entries> entries_of(ManifestReader& manifest) {
  Entries entries;
  while (auto entry = manifest.next()) entries.push_back(std::move(*entry));
  if (auto whole = manifest.error(); !whole) return whole.take_error();
  return entries;
}

Result<Summary> summary_of(ManifestReader& manifest, Bytes block) {
  Summing summing(block);
  while (const auto entry = manifest.next()) summing.add(*entry);
  if (auto whole = manifest.error(); !whole) return whole.take_error();
  return summing.done();
}

bool is_same_source(ManifestReader& manifest, const Entries& walked) {
  for (const Entry& now : walked) {
    const auto then = manifest.next();
    if (!then || !is_same_source(*then, now)) return false;
  }
  return !manifest.next() && manifest.error();
}

}  // namespace spark::staging
