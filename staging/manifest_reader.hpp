// Reads a manifest entry by entry: a million of them are never in memory at once.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "base/result.hpp"
#include "staging/lines.hpp"
#include "staging/manifest.hpp"

namespace spark::staging {

class ManifestReader {
 public:
  // Reads it once to check its seal: Mismatch if it was cut short or changed.
  static Result<ManifestReader> open(const std::filesystem::path& path);
  static Result<ManifestReader> of(std::string_view text);

  const Manifest& header() const { return header_; }  // all but the entries

  // In the order of their paths, the root first; none at the end, and when there is an error.
  std::optional<Entry> next();
  Result<> error() const;

 private:
  explicit ManifestReader(LineReader lines) : lines_(std::move(lines)) {}
  LineReader lines_;
  Manifest header_;
  std::string last_path_;
  bool has_root_ = false;
  std::optional<Error> error_;

  Result<> start();
};

}  // namespace spark::staging
