// The folders of a file system that no disk of this world holds: the root file system, or a tmpfs.
#pragma once

#include <map>
#include <set>
#include <string>

namespace spark::histories {

struct Folder {
  bool is_immutable = false;
  std::set<std::string> files;
};

class Folders {
 public:
  bool has(const std::string& path) const { return folders_.contains(path); }
  void make(const std::string& path) { (void)folders_[path]; }
  Folder& at(const std::string& path) { return folders_[path]; }  // made, if there is none
  bool has_files(const std::string& path) const {
    const auto found = folders_.find(path);
    return found != folders_.end() && !found->second.files.empty();
  }

 private:
  std::map<std::string, Folder> folders_;  // by the path that leads to each
};

}  // namespace spark::histories
