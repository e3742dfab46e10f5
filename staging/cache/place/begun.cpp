#include "staging/cache/place/begun.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "base/text.hpp"
#include "staging/files/deletion.hpp"
#include "staging/files/tree.hpp"
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

// False: a program has a file of it open.
Result<bool> delete_copy(const Destination& copy, const StopFlag& stop) {
  std::vector<Tree> trees;
  if (auto tree = open_tree(copy.path())) trees.push_back(std::move(*tree));
  const auto looked = look_before_deleting(trees, stop);
  if (!looked || !looked->obstacle.empty()) return false;
  trees.clear();
  if (auto removed = remove_tree(copy.folder, copy.name); !removed) return removed.take_error();
  if (::unlink(copy.manifest().c_str()) != 0 && errno != ENOENT)
    return fail_errno(errno, "deleting " + printable(copy.manifest().native()));
  return true;
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

Wanted wanted_of(const std::vector<GenerationRow>& all, const std::vector<GenerationRow>& moved) {
  Wanted wanted;
  for (const GenerationRow& row : all)
    if (row.state == GenerationState::Ready) wanted[folder_name(row.dataset)] = std::nullopt;
  for (const GenerationRow& row : moved) wanted[folder_name(row.dataset)] = row.generation;
  return wanted;
}

Result<> delete_unwanted(const CacheFolder& to, const Wanted& wanted, const StopFlag& stop) {
  for (const std::string& key : names_in_folder(to.data())) {
    const auto known = wanted.find(key);
    if (known != wanted.end() && !known->second) continue;
    bool is_in_use = false;
    for (const std::string& name : names_in_folder(to.data() / key)) {
      const auto number = number_of(name);
      if (!number || (known != wanted.end() && *number == *known->second)) continue;
      const auto deleted = delete_copy({to.data() / key, name}, stop);
      if (!deleted) return deleted.take_error();
      is_in_use = is_in_use || !*deleted;
    }
    if (known != wanted.end() || is_in_use) continue;
    if (auto removed = remove_tree(to.data(), key); !removed) return removed;  // manifests without a copy
  }
  return {};
}

}  // namespace spark::staging
