// The manifest of an adopted folder, in the state folder: while it is there, the folder is offered. The
// worker that adopts folders writes it, and the process that serves peers reads it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "staging/manifest/manifest.hpp"
#include "staging/manifest/manifest_reader.hpp"

namespace spark::fleet {

std::filesystem::path offer_file(const std::filesystem::path& state_dir, const std::string& dataset);

// Which file it is: another manifest at the same path has another value. 0 means none is there.
std::uint64_t number_of(const std::filesystem::path& offer);

// Ends the offer. The manifest stays beside it, for a folder that turns out to be unchanged.
void set_aside(const std::filesystem::path& offer);
std::filesystem::path aside_of(const std::filesystem::path& offer);

struct OfferSummary {
  staging::Summary summary;
  std::string model;  // see staging::summary_text; empty: it is no model
};
// None if it can't be read, or if it is of another definition.
std::optional<OfferSummary> read_offer(const std::filesystem::path& offer, const std::string& definition);

}  // namespace spark::fleet
