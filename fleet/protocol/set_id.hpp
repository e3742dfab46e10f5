// The name of a set of files between hosts: equal for the same dataset name, content and order of files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "staging/manifest/manifest.hpp"
#include "staging/manifest/source_identity.hpp"

namespace spark::fleet {

// Derived from path, size and mtime of every file. For a read-only volume also from its state (see
// staging::state_key_of), which guarantees equal content. For an NFS export from its name, and from the ctime
// and inode of every file: those of the walk, which an NFS client may answer from its cache of attributes. A
// set is then a state of up to a minute ago, as it would be without a fleet. For a copy that is named by its
// content (content_origin), the times don't count. Otherwise the user has said that the folders of the
// dataset are equal.
class SetNaming {
 public:
  explicit SetNaming(const staging::SetOrigin& origin);
  void add(const staging::Entry& entry);  // call in walk order; entries without content have no effect
  std::string id();                       // 33 characters: one letter for the kind, then 32 hexadecimal
                                          // digits

 private:
  char kind_;
  staging::Hasher hasher_;
  std::uint64_t files_ = 0;
};

// Whether sets of this origin are exchanged at all.
bool is_exchanged(const staging::SetOrigin& origin);

// Whether an origin is that of an NFS export.
bool is_of_nfs(std::string_view origin);

// The origin of a copy that other hosts have published, wherever they have it from. `hash`: of its manifest,
// see staging::Summary. Hosts whose copies have other hard links number their units differently, and have
// another set.
std::string content_origin(std::string_view hash);
bool is_of_content(std::string_view origin);

bool is_content_hash(std::string_view text);

bool is_set_id(std::string_view text);

}  // namespace spark::fleet
