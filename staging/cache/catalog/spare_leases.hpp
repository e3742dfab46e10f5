// Leases that the catalog could not take, as with a full state folder: files on the cache's drive, where the
// copies are that they keep. They survive the daemon.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "staging/leases/lease.hpp"

namespace spark::staging {

class SpareLeases {
 public:
  explicit SpareLeases(const std::filesystem::path& cache) : folder_(cache / ".leases") {}

  Result<> add(const Lease& lease) const;  // the cache is there: its drive is mounted
  Result<> remove(const std::string& id) const;

  struct Found {
    std::vector<Lease> leases;
    std::map<std::string, std::string> lost;  // files that can't be read, with the reason
  };
  Result<Found> all() const;

 private:
  std::filesystem::path file(const std::string& id) const;

  std::filesystem::path folder_;
};

}  // namespace spark::staging
