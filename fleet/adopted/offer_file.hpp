// The manifest of an adopted folder, in the state folder: while it is there, the folder is offered. The
// worker that adopts folders writes it, and the process that serves peers reads it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "staging/manifest/manifest.hpp"
#include "staging/manifest/manifest_reader.hpp"

namespace spark::fleet {

std::filesystem::path offer_file(const std::filesystem::path& state_dir, const std::string& dataset);

// Which manifest it is. An inode alone is used again, as for a folder that was changed and changed back.
struct OfferVersion {
  std::uint64_t inode = 0;  // 0: none is there
  std::int64_t written_ns = 0;
  bool is_there() const { return inode != 0; }
  bool operator==(const OfferVersion&) const = default;
};
OfferVersion version_of(const std::filesystem::path& offer);

// Deletes what is kept of datasets that are not among these: the manifests name all files of their folders.
void forget_others(const std::filesystem::path& state_dir, const std::set<std::string>& datasets);

// Ends the offer. The manifest stays beside it until there is another one: for a folder that turns out to be
// unchanged, and to tell the folder from another one in its place.
void set_aside(const std::filesystem::path& offer);
std::filesystem::path aside_of(const std::filesystem::path& offer);
// The entries that are offered, or were offered last. NotFound if these are not known.
Result<staging::ManifestReader> last_offer(const std::filesystem::path& offer);

// The notes that readings of the folder have left, see ReadingNotes.
std::filesystem::path notes_of(const std::filesystem::path& offer);

// A file whose content is no longer what was hashed, although nothing shows a change of it: its drive has
// lost it.
struct DamagedFile {
  staging::Entry entry;
  int error = 0;  // errno of its drive; 0: it has other content
};
// As long as one of them stays as it is, the folder is not offered. Ends the offer, whatever the worker that
// adopts folders does at that moment.
Result<> note_damaged(const std::filesystem::path& offer, const std::vector<DamagedFile>& damaged);
// Those of the noted files that are still the same, in words. Forgets the note when there are none.
std::vector<std::string> damaged_in(const std::filesystem::path& offer, const staging::Entries& entries);
void forget_damage(const std::filesystem::path& offer);  // all of them were read, and are right
// An offer that was set aside is valid again, as the folder has these entries. False if it can't be, or if
// damage of them is noted at this moment.
bool take_back(const std::filesystem::path& offer, const staging::Entries& entries);
std::string in_words(const DamagedFile& file);

struct OfferSummary {
  staging::Summary summary;
  std::string model;  // see staging::summary_text; empty: it is no model
};
// None if it can't be read, or if it is of another definition.
std::optional<OfferSummary> read_offer(const std::filesystem::path& offer, const std::string& definition);

}  // namespace spark::fleet
