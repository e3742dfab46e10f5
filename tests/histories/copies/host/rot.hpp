// Bytes that changed on the cache's drive without a write: which files of the copies are damaged, and which
// the product knows of.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "base/clock.hpp"

namespace spark::histories::copies {

struct Damage {
  SteadyTime since;
  std::optional<SteadyTime> known_since;  // a verification of a copy with this file has found damage since
  bool was_forgotten = false;             // then the catalog was lost
  std::string bytes;                      // what the file has now
  std::string right;                      // what it had before
};

class Rot {
 public:
  // Flips a bit, without changing the time of the last write.
  void flip(const std::filesystem::path& file, std::uint32_t where, SteadyTime now);
  const Damage* of(ino_t inode) const;
  bool is_damaged_content(const std::string& bytes) const;
  // The damaged files below the folder whose damage is older.
  std::set<ino_t> below(const std::filesystem::path& folder, SteadyTime before) const;
  void learn(const std::set<ino_t>& files, SteadyTime now);
  void forget();  // the catalog is lost

 private:
  std::map<ino_t, Damage> damaged_;  // the drive of a history never uses an inode's number again
};

}  // namespace spark::histories::copies
