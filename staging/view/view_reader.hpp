// Reads files of a copy in progress, or says which of their units are missing.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>

#include "base/file.hpp"
#include "staging/files/io/direct_io.hpp"
#include "staging/files/tree.hpp"
#include "staging/view/view_map.hpp"
#include "staging/view/view_tree.hpp"

namespace spark::staging {

// A part of a file.
struct ViewRange {
  NodeNumber file = 0;  // ViewNode::file
  Bytes offset = 0;
  Bytes bytes = 0;
};

struct ViewRead {
  // Failed: it will not come, or the copy can't be read.
  enum class Outcome { Here, Missing, Failed };
  Outcome outcome = Outcome::Failed;
  std::span<const std::byte> bytes{};  // in the caller's buffer; fewer than asked for at the end of the file
};

// Thread-safe.
class ViewReader {
 public:
  using Failed = std::function<void(const std::string& why)>;

  // Both must outlive it. `failed`: a file can't be read though all of it is there; once for each, one at a
  // time.
  ViewReader(const ViewTree& tree, const ViewMap& map, Failed failed = {});

  // The buffer has to have room for the bytes and twice kLargestAlignment.
  ViewRead read(const ViewRange& range, const IoBuffer& buffer);
  // The file of the copy, if all of it is there and it will not be written again; else none.
  std::shared_ptr<const UniqueFd> complete(NodeNumber file);
  // Whether all of its units are there, or one will not come.
  ViewRead::Outcome look(const ViewRange& range);
  // Asks the copy for its missing units first.
  void want(const ViewRange& range, ViewMap& map) const;

 private:
  struct OpenFile {
    UniqueFd fd;
    IoMode mode;
  };
  using OpenFilePtr = std::shared_ptr<const OpenFile>;

  const ViewTree& tree_;
  const ViewMap& map_;
  const Failed failed_;
  std::mutex mutex_;  // guards the next members
  std::uint64_t epoch_ = 0;
  std::shared_ptr<const Tree> copy_;        // keeps the folder through its publication, which renames it
  std::map<NodeNumber, OpenFilePtr> open_;  // opened in that epoch
  std::set<NodeNumber> told_;               // of which `failed_` was

  ViewRange within_file(ViewRange range) const;
  std::pair<std::uint64_t, std::uint64_t> units_of(const ViewRange& range) const;  // first and end
  OpenFilePtr open(NodeNumber file, std::uint64_t epoch, std::string& why_not);
  void tell(NodeNumber file, const std::string& why);
  void follow(std::uint64_t epoch);
  bool has_copy();
  void open_copy();
};

}  // namespace spark::staging
