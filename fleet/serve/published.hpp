// The published copies of a cache that peers may have, found by what their sets are named between hosts.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/json.hpp"
#include "staging/cache/catalog.hpp"

namespace spark::fleet {

class PublishedCopies {
 public:
  // The cache's folder, and the state folder with its catalog.
  PublishedCopies(std::filesystem::path cache, std::filesystem::path state_dir)
      : cache_(std::move(cache)), state_dir_(std::move(state_dir)) {}

  struct Copy {
    std::filesystem::path path, manifest;
    std::string set;   // its name
    std::string walk;  // that of the walk of its volume; empty: it is of no volume
    staging::GenerationRow row;
  };

  // What the catalog says now: copies that are gone, damaged or doubtful are not offered. Reads manifests
  // that it has not read yet: a million files take seconds, for a thread of its own. Any thread.
  void look();
  std::optional<Copy> find(const std::string& set) const;
  std::optional<Copy> find_walk(const std::string& walk) const;
  // [{"name", "generation", "hash", "bytes", "files"}…]: the newest of each dataset
  json::array list() const;

 private:
  std::filesystem::path cache_, state_dir_;
  std::mutex looking_;                         // held before mutex_: each manifest is read once
  std::unique_ptr<staging::Catalog> catalog_;  // of the thread that looks
  mutable std::mutex mutex_;
  std::map<std::filesystem::path, Copy> copies_;  // by manifest
};

}  // namespace spark::fleet
