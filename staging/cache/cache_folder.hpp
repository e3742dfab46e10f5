// Where things are in a cache folder, and the small changes made to it.
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

class CacheFolder {
 public:
  explicit CacheFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path data() const { return path_ / "data"; }
  std::filesystem::path partials() const { return path_ / ".partial"; }
  std::filesystem::path trash() const { return path_ / ".trash"; }
  std::filesystem::path partial(const std::string& dataset) const;
  std::filesystem::path link(const std::string& dataset) const;
  // The generation and its manifest.
  Destination place(const std::string& dataset, std::uint64_t generation) const;

  Result<> make() const;
  // The identity written in the folder; empty if it has none.
  Result<std::string> id() const;
  Result<std::string> make_id() const;
  // Holds on to the cache with this identity: what has_generation() tells is told of it, whatever is mounted
  // or unmounted there meanwhile. Unavailable if it is another one.
  Result<> hold(const std::string& id);

  // An error where a folder can't be listed: that is never "there is nothing".
  Result<std::vector<std::filesystem::path>> partial_areas() const;
  Result<std::vector<std::string>> keys() const;  // folders in data
  Result<std::vector<std::uint64_t>> generations(const std::string& key) const;
  // False only if the file system says so of a cache that is held.
  Result<bool> has_generation(const std::string& key, std::uint64_t generation) const;

  // Lets the stable link name this generation, by one rename.
  Result<> point_link(const std::string& dataset, std::uint64_t generation) const;
  // Takes the link away if it names this generation.
  Result<> drop_link(const std::string& dataset, std::uint64_t generation) const;
  // Whether the link names this generation; 0: whether there is none.
  bool has_link_to(const std::string& dataset, std::uint64_t generation) const;

  // Renames the generation away and takes its manifest; either may be gone already. Durable.
  Result<> move_to_trash(const std::string& dataset, std::uint64_t generation) const;
  std::filesystem::path trashed(const std::string& key, std::uint64_t generation) const;
  Result<std::vector<std::string>> keys_in_trash() const;
  // What is in the trash of the dataset with this key.
  Result<std::vector<std::uint64_t>> in_trash(const std::string& key) const;
  Result<> delete_trashed(const std::string& key, std::uint64_t generation) const;

 private:
  std::filesystem::path path_;
  UniqueFd data_;  // see hold()
  std::filesystem::path link_target(const std::string& dataset, std::uint64_t generation) const;
};

}  // namespace spark::staging
