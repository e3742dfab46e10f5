// How the files of a view are open. The kernel can read a file that is complete from the copy, without the
// view's process ("passthrough"); but all opens of a file at a time must be of one kind, or they fail. So a
// file that is open from before stays in the view until it has been closed. A second node for the file would
// free new opens from that, but an overlayfs on the view then fails each of them with ESTALE.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <mutex>

#include "staging/view/view_map.hpp"
#include "staging/view/view_reader.hpp"
#include "staging/view/view_tree.hpp"

namespace spark::staging {

// Files that the kernel reads itself, by its own numbers.
struct Backings {
  std::function<std::uint32_t(int file)> add;  // 0: it can't
  std::function<void(std::uint32_t number)> remove;
};
Backings backings_of(int device);  // of the connection

// Thread-safe.
class OpenFiles {
 public:
  // All must outlive it.
  OpenFiles(const ViewTree& tree, ViewMap& map, ViewReader& reader, Backings backings)
      : tree_(tree), map_(map), reader_(reader), backings_(std::move(backings)) {}

  // Before the kernel gets the answer. Returns the file's number as a backing; 0: it is read through the
  // view.
  std::uint32_t open(NodeNumber file);
  // After the kernel got the answer.
  void close(NodeNumber file);

 private:
  const ViewTree& tree_;
  ViewMap& map_;
  ViewReader& reader_;
  Backings backings_;
  std::array<std::mutex, 16> mutexes_ = {};  // by file: a first open waits for the drive

  std::mutex& mutex_of(NodeNumber file) { return mutexes_[file % mutexes_.size()]; }
  ViewMap::Opens& opens_of(NodeNumber file) const { return map_.opens(tree_.node(file).first_unit); }
};

}  // namespace spark::staging
