// What a set of files is named by between hosts: the same name, the same content.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "staging/manifest/manifest.hpp"

namespace spark::fleet {

// Exact: of one file system that all hosts see, by path, size, mtime, ctime and inode of every file, which is
// what a cached copy is compared by as well. Plain: of NFS exports and plain folders, by path, size and
// mtime.
enum class SetKind { Exact, Plain };

class SetNaming {
 public:
  explicit SetNaming(SetKind kind) : kind_(kind) {}
  void add(const staging::Entry& entry);  // in walk order; entries without content do not count
  std::string id();                       // 33 characters: the kind's letter, then 32 hexadecimal digits

 private:
  SetKind kind_;
  staging::Hasher hasher_;
  std::uint64_t files_ = 0;
};

bool is_set_id(std::string_view text);

}  // namespace spark::fleet
