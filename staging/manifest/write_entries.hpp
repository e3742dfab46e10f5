// A manifest of entries that belong to the caller: those of a large set are not copied.
#pragma once

#include <filesystem>

#include "staging/manifest/manifest.hpp"

namespace spark::staging {

// As write_manifest.
Result<> write_entries(const std::filesystem::path& path, const ManifestHeader& header,
                       const Entries& entries, Readers readers = {});

}  // namespace spark::staging
