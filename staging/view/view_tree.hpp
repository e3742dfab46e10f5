// The entries of a set as a tree of numbered nodes, which never changes. Equal sets have equal numbers, so a
// process that takes over a view knows the nodes that the kernel asks for.
#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "staging/manifest/manifest.hpp"
#include "staging/manifest/units.hpp"

namespace spark::staging {

// The units of a set, numbered in the order of its files.
class UnitNumbers {
 public:
  // In the order of the paths. Returns the number of the entry's first unit.
  std::uint64_t add(const Entry& entry) {
    const std::uint64_t first = count_;
    if (is_content(entry)) count_ += unit_count(entry.size);
    return first;
  }
  std::uint64_t count() const { return count_; }

 private:
  std::uint64_t count_ = 0;
};

using NodeNumber = std::uint32_t;  // the root is 0

struct ViewNode {
  Entry entry;
  std::uint64_t first_unit = 0;
  NodeNumber folder = 0;                  // that contains it; of the root: the root
  NodeNumber file = 0;                    // itself, or of a further name of a file: the file
  std::uint32_t children = 0, count = 0;  // of a folder: the range in the list of all children
  std::uint32_t links = 1;
};

class ViewTree {
 public:
  // Reads a manifest, which need not have hashes. Unsupported if the root is no folder.
  static Result<ViewTree> read(const std::filesystem::path& manifest);

  NodeNumber size() const { return static_cast<NodeNumber>(nodes_.size()); }
  std::uint64_t units() const { return units_.count(); }
  Bytes bytes() const { return bytes_; }  // of the files' content
  const ViewNode& node(NodeNumber number) const { return nodes_[number]; }
  // Of a folder, sorted by name. None for any other node.
  std::span<const NodeNumber> children(NodeNumber folder) const;
  std::optional<NodeNumber> child(NodeNumber folder, std::string_view name) const;

 private:
  std::deque<ViewNode> nodes_;  // sorted by path; there may be millions, which no reallocation doubles
  std::vector<NodeNumber> children_;
  UnitNumbers units_;
  Bytes bytes_ = 0;

  Result<> add(Entry entry);
  std::optional<NodeNumber> find(std::string_view path) const;
  void list_children();
};

}  // namespace spark::staging
