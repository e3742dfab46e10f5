// Reads a manifest entry by entry, so that a million entries are never in memory at once.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "base/result.hpp"
#include "staging/manifest/lines.hpp"
#include "staging/manifest/manifest.hpp"

namespace spark::staging {

class ManifestReader {
 public:
  // Reads the file once to check its seal: Mismatch if it was truncated or changed.
  static Result<ManifestReader> open(const std::filesystem::path& path);
  static Result<ManifestReader> of(std::string_view text);

  const ManifestHeader& header() const { return header_; }
  std::optional<uid_t> owner() const { return lines_.owner(); }  // of the file

  // In the order of the paths, the root first; none at the end, and after an error.
  std::optional<Entry> next();
  Result<> error() const;

  // Restarts at the root; the seal is not checked again.
  Result<> rewind();

 private:
  explicit ManifestReader(LineReader lines) : lines_(std::move(lines)) {}
  LineReader lines_;
  ManifestHeader header_;
  std::string last_path_;
  bool has_root_ = false;
  std::optional<Error> error_;

  Result<> check();  // its seal
  Result<> start();
};

// All in memory.
Result<Entries> entries_of(const std::filesystem::path& manifest);
// The remaining ones.
Result<Entries> entries_of(ManifestReader& manifest);
Result<Summary> summary_of(ManifestReader& manifest, Bytes block = kSmallestBlock);

// Whether a walk of the source equals the source that the manifest was copied from. The manifest must be at
// its beginning.
bool is_same_source(ManifestReader& manifest, const Entries& walked);

}  // namespace spark::staging
