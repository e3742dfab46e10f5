// Reads a manifest entry by entry: a million of them are never in memory at once.
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
  // Reads it once to check its seal: Mismatch if it was cut short or changed.
  static Result<ManifestReader> open(const std::filesystem::path& path);
  static Result<ManifestReader> of(std::string_view text);

  const ManifestHeader& header() const { return header_; }

  // In the order of their paths, the root first; none at the end, and when there is an error.
  std::optional<Entry> next();
  Result<> error() const;

  // Begins again with the root; its seal is not checked again.
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

// Of the entries that are left.
Result<Summary> summary_of(ManifestReader& manifest, Bytes block = kSmallestBlock);

// Whether a walk of the source found just what the manifest, at its begin, was copied from.
bool is_same_source(ManifestReader& manifest, const Entries& walked);

}  // namespace spark::staging
