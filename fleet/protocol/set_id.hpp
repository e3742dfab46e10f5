// The name of a set of files between hosts: equal for the same dataset name, content and order of files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "staging/manifest/manifest.hpp"

namespace spark::fleet {

// Derived from path, size and mtime of every file. For a read-only volume also from its state (see
// staging::state_key_of), which guarantees equal content. NFS exports and plain folders have no state.
class SetNaming {
 public:
  explicit SetNaming(std::string_view state);
  void add(const staging::Entry& entry);  // call in walk order; entries without content have no effect
  std::string id();                       // 33 characters: one letter for the kind, then 32 hexadecimal
                                          // digits

 private:
  char kind_;
  staging::Hasher hasher_;
  std::uint64_t files_ = 0;
};

bool is_set_id(std::string_view text);

}  // namespace spark::fleet
