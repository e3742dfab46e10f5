// Datasets whose last copy was evicted. A move of the cache may have taken that copy to another folder
// before.
#pragma once

#include <cstdint>
#include <string>

#include "staging/cache/catalog/catalog.hpp"

namespace spark::staging {

class EvictedRecords {
 public:
  explicit EvictedRecords(Catalog& catalog) : catalog_(catalog) {}

  // Until Catalog::put() adds a copy of the dataset.
  Result<> note(const std::string& dataset, std::uint64_t generation);
  // The number of its last copy; 0: it was not evicted.
  Result<std::uint64_t> last_of(const std::string& dataset) const;

 private:
  Catalog& catalog_;
};

}  // namespace spark::staging
