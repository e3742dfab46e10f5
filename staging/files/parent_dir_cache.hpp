// open_parent for entries that come folder by folder: the folder of the one before stays open.
#pragma once

#include <string>
#include <string_view>

#include "staging/files/tree.hpp"

namespace spark::staging {

class ParentDirCache {
 public:
  explicit ParentDirCache(const Tree& tree) : tree_(tree) {}

  // The folder that holds the entry, until the next call; negative: errno says why.
  int open(std::string_view path);
  const std::string& name() const { return name_; }  // the entry's there

 private:
  const Tree& tree_;
  UniqueFd fd_;
  std::string path_, name_;
};

}  // namespace spark::staging
