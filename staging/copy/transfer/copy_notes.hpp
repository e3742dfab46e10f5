// Notes for a copy's user about some of its entries: one warning for each kind.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "staging/manifest/manifest.hpp"

namespace spark::staging {

class CopyNotes {
 public:
  // The first three: the copy's file system can't store the entry as it is.
  enum class Kind { LostAttributes, OtherTime, IsApart, LfsPointer, ChangedFolder };

  void add(Kind kind, const Entry& entry);  // from any thread
  std::vector<std::string> warnings() const;

 private:
  struct Count {
    std::uint64_t number = 0;
    std::string first;
    std::string text() const;
  };
  mutable std::mutex mutex_;
  std::array<Count, 5> counts_;
};

}  // namespace spark::staging
