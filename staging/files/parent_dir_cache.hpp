// open_parent for entries that come folder by folder: the previous entry's folder stays open.
#pragma once

#include <string>
#include <string_view>

#include "staging/files/tree.hpp"

namespace spark::staging {

class ParentDirCache {
 public:
  explicit ParentDirCache(const Tree& tree) : tree_(tree) {}

  // The entry's parent folder, valid until the next call; negative on failure, with the reason in errno.
  int open(std::string_view path);
  const std::string& name() const { return name_; }  // the entry's name in that folder

 private:
  const Tree& tree_;
  UniqueFd fd_;
  std::string path_, name_;
};

}  // namespace spark::staging
