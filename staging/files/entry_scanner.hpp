// Examines one name in a folder for the walk.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/threads.hpp"
#include "staging/files/tree.hpp"
#include "staging/manifest/manifest.hpp"

struct statx;

namespace spark::staging {

// Identifies a file. An inode number alone is not enough, because subvolumes have their own numbers.
using FileId = std::pair<std::uint64_t, std::uint64_t>;  // device, inode

FileId file_id(const struct statx& info);

struct Linked {           // a file with more than one name
  std::size_t entry = 0;  // its index among the entries found with it
  FileId file;
  std::uint32_t names = 0;  // number of its names, here or elsewhere
};

struct Found {
  std::vector<Entry> entries;
  std::vector<std::string> folders;  // paths of the folders among the entries: to be listed
  std::vector<Linked> linked;
  std::vector<std::string> skipped;  // printable, with the type: "a/pipe (FIFO)"
};

// Fills in the entry from the attributes of its file or folder.
void fill(Entry& entry, const struct statx& info, const Tree& tree);

// For notes about the entry, printable; "a/…" if the tree's notes are told to others and its folder "a" is
// not open to them.
std::string noted_name(const Tree& tree, std::string_view path);

// How a file's allocated space is counted: on its own file system, or in a copy, which keeps holes and is not
// compressed.
enum class Taken { Here, ByACopy };

class EntryScanner {
 public:
  EntryScanner(const Tree& tree, std::span<const std::string> exclude, Taken taken, const StopFlag& stop)
      : tree_(tree), exclude_(exclude), taken_(taken), stop_(stop) {}

  Result<> at_root(Found& found) const;
  // `folder` is the open folder that holds the name, `parent` that folder's path in the tree.
  Result<> at(int folder, const std::string& parent, const std::string& name, Found& found) const;

 private:
  const Tree& tree_;
  std::span<const std::string> exclude_;
  Taken taken_;
  const StopFlag& stop_;

  // As rsync and git read a pattern: a slash at its beginning ties it to the root, one at its end to folders.
  enum class Of { All, Folders };
  bool is_excluded(const std::string& path, const std::string& name, Of patterns) const;
  Bytes taken_by(const std::string& path, const struct statx& info) const;
  Result<> add(const std::string& path, const struct statx& info, int folder, const std::string& name,
               Found& found) const;
};

}  // namespace spark::staging
