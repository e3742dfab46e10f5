#include "staging/copy/prune.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "staging/files/tree.hpp"

namespace spark::staging {
namespace {

class Prune {
 public:
  Prune(const Tree& tree, const Entries& entries, const Resumed& kept)
      : tree_(tree), entries_(entries), kept_(kept) {}

  Result<> go() {
    struct stat info {};
    const int failed = ::fstatat(tree_.folder.get(), tree_.file.c_str(), &info, AT_SYMLINK_NOFOLLOW);
    if (failed != 0) return errno == ENOENT ? Result<>() : fail_errno(errno, "looking at " + tree_.shown(""));
    const bool wants_folder = entries_.front().type == EntryType::Folder;
    if (S_ISDIR(info.st_mode) && wants_folder) return prune_folders();
    if (S_ISREG(info.st_mode) && !wants_folder && kept_.has(0)) return {};
    return remove_tree(tree_, "");
  }

 private:
  const Tree& tree_;
  const Entries& entries_;
  const Resumed& kept_;

  Result<> prune_folders() {
    std::vector<std::string> folders = {""};
    for (std::size_t i = 0; i < folders.size(); ++i) {
      const std::string folder = folders[i];
      UniqueFd opened = open_beneath(tree_, folder, O_RDONLY | O_DIRECTORY);
      if (!opened) return fail_errno(errno, "opening folder " + tree_.shown(folder));
      ::fchmod(opened.get(), 0700);  // the earlier attempt may have made it inaccessible
      auto names = names_in(std::move(opened), tree_.shown(folder));
      if (!names) return names.take_error();
      for (const std::string& name : *names) {
        const std::string path = join_path(folder, name);
        const std::size_t wanted = index_of(entries_, path);
        const UniqueFd fd = open_beneath(tree_, path, O_PATH | O_NOFOLLOW);
        struct stat info {};
        // O_PATH stops at a symlink: it is not a folder and is deleted.
        const bool is_folder = fd && ::fstat(fd.get(), &info) == 0 && S_ISDIR(info.st_mode);
        if (is_folder && wanted < entries_.size() && entries_[wanted].type == EntryType::Folder) {
          folders.push_back(path);
        } else if (is_folder || wanted == entries_.size() || !kept_.has(wanted)) {
          if (auto removed = remove_tree(tree_, path); !removed) return removed;
        }
      }
    }
    return {};
  }
};

}  // namespace

Result<> prune(const PartialArea& area, const Entries& entries, const Resumed& kept) {
  auto tree = tree_in(area.folder(), "data");
  if (!tree) return tree.take_error();
  return Prune(*tree, entries, kept).go();
}

}  // namespace spark::staging
