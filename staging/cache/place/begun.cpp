#include "staging/cache/place/begun.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "base/text.hpp"
#include "staging/files/deletion.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/manifest_reader.hpp"
#include "staging/manifest/names.hpp"

namespace spark::staging {
namespace {

namespace fs = std::filesystem;

Bytes on_disk(const fs::path& path) {
  constexpr Bytes kUnit = 512;  // of st_blocks
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return 0;
  Bytes sum = static_cast<Bytes>(info.st_blocks) * kUnit;
  if (!S_ISDIR(info.st_mode)) return sum;
  std::error_code error;
  for (fs::recursive_directory_iterator at(path, error), end; !error && at != end; at.increment(error))
    if (::lstat(at->path().c_str(), &info) == 0) sum += static_cast<Bytes>(info.st_blocks) * kUnit;
  return sum;
}

std::vector<std::string> names_in_folder(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    names.push_back(at->path().filename().native());
  return names;
}

std::optional<std::uint64_t> number_of(const std::string& name) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc{} || end != name.data() + name.size()) return std::nullopt;
  return number;
}

Result<UnwantedCopy> look_at(const Destination& copy, const StopFlag& stop) {
  UnwantedCopy found{copy.folder.filename().native(), copy, 0, {}};
  if (auto manifest = ManifestReader::open(copy.manifest())) found.dataset = manifest->header().dataset;
  std::vector<Tree> trees;
  if (auto tree = open_tree(copy.path())) trees.push_back(std::move(*tree));
  auto looked = look_before_deleting(trees, stop);
  if (!looked) return looked.take_error();
  found.freed = looked->freed;
  found.obstacle = std::move(looked->obstacle);
  return found;
}

Result<> delete_copy(const Destination& copy) {
  if (auto removed = remove_tree(copy.folder, copy.name); !removed) return removed;
  if (::unlink(copy.manifest().c_str()) != 0 && errno != ENOENT)
    return fail_errno(errno, "deleting " + printable(copy.manifest().native()));
  return {};
}

}  // namespace

fs::path filling_of(const CacheFolder& to, const Destination& place) {
  return to.path() / kFilling / (place.folder.filename().native() + "." + place.name);
}

Bytes taken_by(const fs::path& filling) {
  const Destination place{filling.parent_path(), filling.filename()};
  return on_disk(filling) + on_disk(place.partial());
}

Result<> delete_others(const CacheFolder& to, const std::set<fs::path>& fillings) {
  std::set<std::string> kept;
  for (const fs::path& filling : fillings) {
    const Destination place{filling.parent_path(), filling.filename()};
    for (const fs::path& path : {filling, place.manifest(), place.partial()})
      kept.insert(path.filename().native());
  }
  for (const std::string& name : names_in_folder(to.path() / kFilling)) {
    if (kept.contains(name)) continue;
    if (auto removed = remove_tree(to.path() / kFilling, name); !removed) return removed;
  }
  return {};
}

Wanted wanted_of(const std::vector<GenerationRow>& all, const std::vector<GenerationRow>& moved,
                 const std::set<std::string>& there) {
  Wanted wanted;
  for (const GenerationRow& row : all)
    if (row.state == GenerationState::Ready) wanted[folder_name(row.dataset)] = std::nullopt;
  for (const GenerationRow& row : moved)
    wanted[folder_name(row.dataset)] = there.contains(row.dataset) ? row.generation : 0;
  return wanted;
}

Result<std::vector<UnwantedCopy>> find_unwanted(const CacheFolder& to, const Wanted& wanted,
                                                const StopFlag& stop) {
  std::vector<UnwantedCopy> unwanted;
  for (const std::string& key : names_in_folder(to.data())) {
    const auto known = wanted.find(key);
    if (known != wanted.end() && !known->second) continue;
    for (const std::string& name : names_in_folder(to.data() / key)) {
      const auto number = number_of(name);
      if (!number || (known != wanted.end() && *number == *known->second)) continue;
      auto copy = look_at({to.data() / key, name}, stop);
      if (!copy) return copy.take_error();
      unwanted.push_back(std::move(*copy));
    }
  }
  return unwanted;
}

Result<> delete_unwanted(const CacheFolder& to, const Wanted& wanted, std::vector<UnwantedCopy>& copies,
                         const StopFlag& stop) {
  std::set<std::string> in_use;
  for (UnwantedCopy& copy : copies) {
    auto now = look_at(copy.place, stop);
    if (!now) return now.take_error();
    copy = std::move(*now);
    if (!copy.obstacle.empty()) in_use.insert(copy.place.folder.filename().native());
    if (!copy.obstacle.empty()) continue;
    if (auto deleted = delete_copy(copy.place); !deleted) return deleted;
  }
  for (const std::string& key : names_in_folder(to.data())) {  // manifests without a copy
    if (wanted.contains(key) || in_use.contains(key)) continue;
    if (auto removed = remove_tree(to.data(), key); !removed) return removed;
  }
  return {};
}

}  // namespace spark::staging
