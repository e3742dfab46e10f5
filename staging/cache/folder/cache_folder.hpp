// Paths in a cache folder, and the small changes made there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"
#include "staging/copy/partial/publish.hpp"

namespace spark::staging {

// Of folders that users enter by a name that they know. What they can list they can also lock, and the names
// may be none of their business.
inline constexpr unsigned kEntered = 0711;

class CacheFolder {
 public:
  explicit CacheFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path data() const { return path_ / "data"; }
  std::filesystem::path partials() const { return path_ / ".partial"; }
  std::filesystem::path named() const { return path_ / ".named"; }  // see named_file.hpp
  std::filesystem::path trash() const { return path_ / ".trash"; }
  std::filesystem::path partial(const std::string& dataset) const;
  std::filesystem::path link(const std::string& dataset) const;
  // The paths of the generation and its manifest.
  Destination place(const std::string& dataset, std::uint64_t generation) const;

  // All folders of the cache. Other users may enter those of copies by name alone, and open no others.
  Result<> make() const;
  // The identity stored in the folder; empty if it has none.
  Result<std::string> id() const;
  Result<std::string> make_id() const;
  // Keeps the cache with this identity open, so that has_generation() reads it even if another file system is
  // mounted or unmounted there later. Unavailable if the folder has another identity.
  Result<> hold(const std::string& id);

  // Unavailable if its drive can't be read at all, or is not mounted any more.
  Result<> check_answers() const;

  // A folder that can't be listed is an error, never an empty list.
  Result<std::vector<std::filesystem::path>> partial_areas() const;
  Result<std::vector<std::string>> keys() const;  // folders in data
  Result<std::vector<std::uint64_t>> generations(const std::string& key) const;
  // False only if the file system reports it, and the cache is open through hold().
  Result<bool> has_generation(const std::string& key, std::uint64_t generation) const;

  // Points the stable link at this generation, by one rename.
  Result<> point_link(const std::string& dataset, std::uint64_t generation) const;
  // Removes the link if it points at this generation.
  Result<> drop_link(const std::string& dataset, std::uint64_t generation) const;
  // Whether the link points at this generation; with 0, whether there is no link.
  bool has_link_to(const std::string& dataset, std::uint64_t generation) const;

  // Moves the generation and its manifest to the trash by renaming; either may be gone already. Durable.
  Result<> move_to_trash(const std::string& dataset, std::uint64_t generation) const;
  std::filesystem::path trashed(const std::string& key, std::uint64_t generation) const;
  Result<std::vector<std::string>> keys_in_trash() const;
  // The generations in the trash of the dataset with this key.
  Result<std::vector<std::uint64_t>> in_trash(const std::string& key) const;
  Result<> delete_trashed(const std::string& key, std::uint64_t generation) const;

 private:
  std::filesystem::path path_;
  UniqueFd data_;  // see hold()
};

// Makes the folder the cache with this identity.
Result<> write_cache_id(const std::filesystem::path& folder, const std::string& id);

// Renames it to `name`: from then on the folder is no cache. Durable; one that was renamed before is no
// error.
Result<> give_up_cache_id(const std::filesystem::path& folder, const char* name);

// Closes what earlier versions left open to other users: the folder of a dataset's generations, and its
// files.
Result<> close_to_others(const CacheFolder& cache, const std::string& key);

}  // namespace spark::staging
