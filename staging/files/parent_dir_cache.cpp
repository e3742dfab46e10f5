#include "staging/files/parent_dir_cache.hpp"

namespace spark::staging {

int ParentDirCache::open(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  // Entries of the same folder are not neighbours of an entry that replaces a link.
  const bool is_alone = path.empty() || tree_.grafts.targets.contains(path);
  const std::string_view above = slash == std::string_view::npos ? "" : path.substr(0, slash);
  if (!fd_ || above != path_ || is_alone) {
    Parent parent = open_parent(tree_, path);
    name_ = std::move(parent.name);
    fd_ = std::move(parent.folder);
    path_ = is_alone ? "\n" : above;  // matches no other entry's folder
  } else {
    name_ = path.substr(slash == std::string_view::npos ? 0 : slash + 1);
  }
  return fd_.get();
}

}  // namespace spark::staging
