// What a set of files is named by between hosts: the same name, the same content and the same order of files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "staging/manifest/manifest.hpp"

namespace spark::fleet {

// By path, size and mtime of every file; of a read-only volume by its state as well (see
// staging::state_key_of), which says that a copy can't differ. NFS exports and plain folders have no state.
class SetNaming {
 public:
  explicit SetNaming(std::string_view state);
  void add(const staging::Entry& entry);  // in walk order; entries without content do not count
  std::string id();                       // 33 characters: the kind's letter, then 32 hexadecimal digits

 private:
  char kind_;
  staging::Hasher hasher_;
  std::uint64_t files_ = 0;
};

bool is_set_id(std::string_view text);

}  // namespace spark::fleet
