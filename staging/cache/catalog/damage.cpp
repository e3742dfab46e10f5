#include "staging/cache/catalog/damage.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <sstream>

#include "base/access/locks.hpp"
#include "base/text.hpp"
#include "staging/cache/catalog/catalog_private.hpp"
#include "staging/files/source_trouble.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {
namespace {

constexpr char kFile[] = ".spark-damage";
// Empty: damage was found while another process kept the lock, and all copies are suspect.
constexpr char kBeside[] = ".spark-damage-beside";
constexpr std::chrono::milliseconds kPatience{10'000};  // others have it for moments

std::string to_text(const Damage& damage) {
  std::string text = "revision " + std::to_string(damage.revision) + "\n";
  text += "damaged " + std::to_string(damage.damaged) + "\n";
  for (const auto& [generation, what] : damage.found) {
    std::string line = what;
    std::ranges::replace(line, '\n', ' ');
    text += "found " + std::to_string(generation) + " " + line + "\n";
  }
  for (const std::uint64_t generation : damage.sound) text += "sound " + std::to_string(generation) + "\n";
  return text;
}

// A record that makes no sense was about damage: then all copies are suspect.
Damage damage_in(const std::string& text) {
  Damage damage;
  std::istringstream lines(text);
  std::string kind, what;
  for (std::uint64_t number = 0; lines >> kind >> number && std::getline(lines, what);) {
    if (kind == "revision") damage.revision = number;
    if (kind == "damaged") damage.damaged = number;
    if (kind == "found") damage.found[number] = what.substr(std::min<std::size_t>(1, what.size()));
    if (kind == "sound") damage.sound.insert(number);
  }
  return damage.revision > 0 && lines.eof() ? damage : Damage{1};
}

// Of this file, and no later one of its name; 0: there is none.
std::uint64_t identity_of(const std::filesystem::path& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return errno == ENOENT || errno == ENOTDIR ? 0 : 1;
  const auto changed =
      std::uint64_t(info.st_ctim.tv_sec) * 1'000'000'000 + std::uint64_t(info.st_ctim.tv_nsec);
  return std::max<std::uint64_t>(1, info.st_ino ^ changed);
}

}  // namespace

std::filesystem::path DamageRecords::file(const std::string& dataset) const {
  return data_ / folder_name(dataset) / kFile;
}

std::filesystem::path DamageRecords::beside(const std::string& dataset) const {
  return data_ / folder_name(dataset) / kBeside;
}

Result<std::string> DamageRecords::in_catalog(const std::string& dataset) const {
  std::string record;
  const auto take = [&](const Statement& row) { record = row.text(0); };
  auto read = catalog_.database_->read("SELECT record FROM damage WHERE dataset = ?", take, dataset);
  return read ? Result<std::string>(std::move(record)) : read.take_error();
}

Result<> DamageRecords::put_in_catalog(const std::string& dataset, const std::string& record) {
  if (record.empty()) return catalog_.database_->change("DELETE FROM damage WHERE dataset = ?", dataset);
  return catalog_.database_->change("INSERT OR REPLACE INTO damage VALUES (?, ?)", dataset, record);
}

Result<Damage> DamageRecords::of(const std::string& dataset) const {
  auto known = in_record(dataset);
  if (!known || identity_of(beside(dataset)) == 0) return known;
  known->damaged = ++known->revision;
  known->sound.clear();
  return known;
}

Result<Damage> DamageRecords::in_record(const std::string& dataset) const {
  const auto text = read_file(file(dataset));
  const bool is_there = text.has_value() || text.error().kind != Errc::NotFound;
  if (!text && is_there && !is_medium_error(text.error().number)) return text.take_error();
  const auto second = in_catalog(dataset);
  if (!second) return second.take_error();
  Damage kept = second->empty() ? Damage{} : damage_in(*second);
  // A record that is damaged itself may have been newer than the catalog's.
  if (!text && is_there) return Damage{std::max<std::uint64_t>(1, kept.revision)};
  // There was damage, and no room to say which; the catalog may not have been told either.
  if (text && text->empty()) {
    kept.damaged = ++kept.revision;
    kept.sound.clear();
    return kept;
  }
  Damage damage = is_there ? damage_in(*text) : Damage{};
  return kept.revision > damage.revision ? std::move(kept) : std::move(damage);
}

Result<> DamageRecords::add_to(std::vector<GenerationRow>& rows) const {
  Result<> all;
  std::optional<std::string> dataset;
  Result<Damage> known = Damage{};
  for (GenerationRow& row : rows) {
    if (row.dataset != dataset) known = of(row.dataset);
    dataset = row.dataset;
    row.is_suspect = !known || known->makes_suspect(row.generation);
    if (!known) row.damage = "whether it is damaged is not known: " + known.error().what;
    if (known && known->found.contains(row.generation)) row.damage = known->found.at(row.generation);
    if (all && !known) all = fail(known.error());
  }
  return all;
}

Result<> DamageRecords::change(const std::string& dataset, const std::function<bool(Damage&)>& alter) {
  auto locked = lock(dataset);
  const std::uint64_t noted_beside = identity_of(beside(dataset));
  auto known = of(dataset);
  if (!known) return known.take_error();
  if (!alter(*known)) return {};
  ++known->revision;
  const std::string text = to_text(*known);
  auto written = locked ? write_file_atomically(file(dataset), text, 0600) : fail(locked.error());
  const bool found_damage = known->damaged == known->revision;
  if (locked && !written && written.error().kind == Errc::NoSpace && found_damage)
    written = write_file_atomically(file(dataset), "", 0600);  // takes no block of the drive
  // The process that has the lock may be about to replace the record.
  if (!locked && found_damage) written = write_file_atomically(beside(dataset), "", 0600);
  // Another one found damage since, if it is not the same.
  if (locked && written && noted_beside != 0 && identity_of(beside(dataset)) == noted_beside)
    ::unlink(beside(dataset).c_str());
  // With the record on the drive, a full state folder does not matter.
  static_cast<void>(put_in_catalog(dataset, text));
  return written;
}

Result<> DamageRecords::check_sound(const std::string& dataset, std::uint64_t generation) const {
  const auto known = of(dataset);
  if (!known) return known.take_error();
  if (!known->makes_suspect(generation)) return {};
  return fail(Errc::Mismatch, "damage was found in its earlier copy, which it shares files with",
              "stage it again: all of it is then read from the source");
}

Result<> DamageRecords::vouch_for(const std::string& dataset, std::uint64_t generation) {
  bool is_suspect = false;
  auto noted = change(dataset, [&](Damage& now) {
    is_suspect = now.makes_suspect(Damage::kInProgress);
    if (is_suspect || now.revision == 0) return false;
    now.found.erase(generation);
    return now.sound.insert(generation).second;
  });
  auto sound = check_sound(dataset, generation);
  return sound || is_suspect || noted ? std::move(sound) : std::move(noted);
}

// The catalog's first: a record that is left alone is always the newest.
Result<> DamageRecords::drop(const std::string& dataset) {
  const auto locked = lock(dataset);
  if (auto dropped = put_in_catalog(dataset, ""); !dropped) return dropped;
  const std::filesystem::path path = file(dataset);
  ::unlink(beside(dataset).c_str());
  if (::unlink(path.c_str()) != 0) {
    if (errno == ENOENT) return {};
    return fail_errno(errno, "deleting " + printable(path.native()));
  }
  ::rmdir(path.parent_path().c_str());
  return {};
}

// The cache's own private folder: every user may open the dataset's.
Result<UniqueFd> DamageRecords::lock(const std::string& dataset) const {
  return lock_private(data_.parent_path() / ".trash", kPatience,
                      "noting the damage of " + printable(dataset));
}

}  // namespace spark::staging
