// The published copies of a cache, found by what their sets are named between hosts.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.hpp"
#include "base/units.hpp"

namespace spark::fleet {

class PublishedCopies {
 public:
  explicit PublishedCopies(std::filesystem::path cache) : cache_(std::move(cache)) {}

  struct Copy {
    std::filesystem::path path, manifest;
    std::string dataset, hash;
    std::uint64_t generation = 0, files = 0;
    Bytes bytes = 0;
    std::string exact, plain;  // names of its set
  };

  // Reads manifests that it has not read yet, and forgets copies that are gone. A million files take seconds:
  // for a thread of its own. Any thread.
  void look();
  std::optional<Copy> find(const std::string& set) const;
  // [{"name", "generation", "hash", "bytes", "files"}…]: the newest of each dataset
  json::array list() const;

 private:
  std::filesystem::path cache_;  // its folder
  std::mutex looking_;           // held before mutex_: each manifest is read once
  mutable std::mutex mutex_;
  std::map<std::filesystem::path, std::optional<Copy>> copies_;  // by manifest; none: it is not offered
};

}  // namespace spark::fleet
