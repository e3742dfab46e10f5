#include "fleet/adopted/offer_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/text.hpp"
#include "staging/manifest/entry_line.hpp"
#include "staging/manifest/lines.hpp"
#include "staging/manifest/names.hpp"
#include "staging/manifest/source_identity.hpp"
#include "staging/models/model.hpp"

namespace spark::fleet {
namespace {

constexpr std::string_view kManifest = ".manifest";

std::filesystem::path damage_of(const std::filesystem::path& offer) {
  return offer.native() + ".damaged";
}

}  // namespace

std::filesystem::path offer_file(const std::filesystem::path& state_dir, const std::string& dataset) {
  return state_dir / "adopted" / (staging::folder_name(dataset) + std::string(kManifest));
}

OfferVersion version_of(const std::filesystem::path& offer) {
  struct stat info {};
  if (::lstat(offer.c_str(), &info) != 0) return {};
  return {info.st_ino, info.st_mtim.tv_sec * std::int64_t{1'000'000'000} + info.st_mtim.tv_nsec};
}

std::filesystem::path aside_of(const std::filesystem::path& offer) {
  return offer.native() + ".aside";
}

void forget_others(const std::filesystem::path& state_dir, const std::set<std::string>& datasets) {
  std::set<std::string> kept;
  for (const std::string& dataset : datasets) kept.insert(offer_file(state_dir, dataset).filename());
  for (const std::filesystem::path& file : list_folder(state_dir / "adopted")) {
    const std::string name = file.filename();
    const std::size_t end = name.rfind(kManifest);
    std::error_code ignored;  // it stays until the next start
    if (end != std::string::npos && !kept.contains(name.substr(0, end + kManifest.size())))
      std::filesystem::remove(file, ignored);
  }
}

void set_aside(const std::filesystem::path& offer) {
  std::error_code failed;
  std::filesystem::rename(offer, aside_of(offer), failed);
  if (failed) std::filesystem::remove(offer, failed);
}

Result<staging::ManifestReader> last_offer(const std::filesystem::path& offer) {
  auto now = staging::ManifestReader::open(offer);
  return now ? std::move(now) : staging::ManifestReader::open(aside_of(offer));
}

std::filesystem::path notes_of(const std::filesystem::path& offer) {
  return offer.native() + ".read";
}

std::string in_words(const DamagedFile& file) {
  const std::string name = printable(file.entry.path.view());
  return file.error == 0 ? name : name + " (" + std::generic_category().message(file.error) + ")";
}

// The note first: it is looked for after each renaming of a manifest to that of an offer.
Result<> note_damaged(const std::filesystem::path& offer, const std::vector<DamagedFile>& damaged) {
  std::string lines;
  for (const DamagedFile& one : damaged)
    lines += std::to_string(one.error) + " " + staging::to_line(one.entry) + "\n";
  if (auto noted = write_file_atomically(damage_of(offer), lines, 0600); !noted) return noted;
  set_aside(offer);
  return {};
}

std::vector<std::string> damaged_in(const std::filesystem::path& offer, const staging::Entries& entries) {
  std::vector<std::string> names;
  const auto note = damage_of(offer);
  auto lines = staging::LineReader::open(note);
  if (!lines) return names;
  while (const auto line = lines->next()) {
    const std::size_t space = line->find(' ');
    auto then = space == line->npos ? Result<staging::Entry>(fail(Errc::Mismatch, "no note"))
                                    : staging::parse_entry(line->substr(space + 1));
    if (!then) continue;
    const DamagedFile noted{std::move(*then), std::atoi(std::string(line->substr(0, space)).c_str())};
    const std::string_view path = noted.entry.path.view();
    const staging::Entry* now = staging::find_entry(entries, path);
    if (now != nullptr && staging::identity_of(*now) == staging::identity_of(noted.entry))
      names.push_back(in_words(noted));
  }
  if (names.empty() && lines->error()) forget_damage(offer);
  return names;
}

void forget_damage(const std::filesystem::path& offer) {
  std::error_code failed;  // then it is not offered yet
  std::filesystem::remove(damage_of(offer), failed);
}

bool take_back(const std::filesystem::path& offer, const staging::Entries& entries) {
  std::error_code failed;
  if (!version_of(offer).is_there()) std::filesystem::rename(aside_of(offer), offer, failed);
  if (failed) return false;
  if (damaged_in(offer, entries).empty()) return true;
  set_aside(offer);
  return false;
}

std::optional<OfferSummary> read_offer(const std::filesystem::path& offer, const std::string& definition) {
  auto manifest = staging::ManifestReader::open(offer);
  if (!manifest || manifest->header().definition != definition) return std::nullopt;
  const auto record = staging::parse_model_record(manifest->header().model);
  auto summary = staging::summary_of(*manifest);
  if (!summary) return std::nullopt;
  return OfferSummary{std::move(*summary), record ? staging::summary_text(*record) : ""};
}

}  // namespace spark::fleet
