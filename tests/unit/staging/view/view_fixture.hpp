// The view of a set in a temporary folder.
#pragma once

#include <sys/xattr.h>

#include "staging/view/copy_viewer.hpp"
#include "staging/view/view_reader.hpp"
#include "staging/view/view_tree.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging::test {

class ViewTest : public testing::Test {
 protected:
  ~ViewTest() override { ViewMap::remove(place_); }

  TempFolder folder_;
  ViewPlace place_{folder_ / "live", "faces.1"};

  ViewTree tree_of(const ViewMap& /*map*/) const {
    auto tree = ViewTree::read(place_.entries());
    EXPECT_TRUE(tree) << tree.error().message();
    return std::move(*tree);
  }

  static NodeNumber find(const ViewTree& tree, std::string_view path) {
    NodeNumber at = 0;
    for (std::size_t begin = 0; begin <= path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      const auto child = tree.child(at, path.substr(begin, end - begin));
      EXPECT_TRUE(child) << path;
      at = child.value_or(0);
      begin = end + 1;
    }
    return tree.node(at).file;
  }

  // A set with an ACL on a folder has no view.
  static void drop_acls_of_folders(const std::filesystem::path& root) {
    ::removexattr(root.c_str(), "system.posix_acl_access");
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root))
      if (!entry.is_symlink() && entry.is_directory())
        ::removexattr(entry.path().c_str(), "system.posix_acl_access");
  }

  // The whole file; none if it is not Here.
  static std::optional<std::string> whole(ViewReader& reader, const ViewTree& tree, NodeNumber file) {
    constexpr Bytes kStep = kMiB;
    const IoBuffer buffer(kStep + 2 * kLargestAlignment);
    std::string all;
    for (Bytes at = 0; at < tree.node(file).entry.size; at += kStep) {
      const ViewRead read = reader.read({file, at, kStep}, buffer);
      if (read.outcome != ViewRead::Outcome::Here) return std::nullopt;
      all.append(reinterpret_cast<const char*>(read.bytes.data()), read.bytes.size());
    }
    return all;
  }
};

}  // namespace spark::staging::test
