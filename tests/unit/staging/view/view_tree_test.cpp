#include "staging/view/view_tree.hpp"

#include <gmock/gmock.h>

#include "tests/unit/staging/view/view_fixture.hpp"

namespace spark::staging::test {
namespace {

Entry entry(const char* path, EntryType type = EntryType::File, Bytes size = 0) {
  Entry made;
  made.path = path;
  made.type = type;
  made.size = size;
  made.mode = 0755;
  return made;
}

class ViewTreeTest : public ViewTest {
 protected:
  Result<ViewTree> read(Entries entries) {
    Manifest manifest;
    manifest.entries = std::move(entries);
    if (auto written = write_manifest(folder_ / "entries", manifest); !written) return written.take_error();
    return ViewTree::read(folder_ / "entries");
  }
};

std::vector<std::string> names(const ViewTree& tree, NodeNumber folder) {
  std::vector<std::string> all;
  for (const NodeNumber child : tree.children(folder))
    all.emplace_back(name_of(tree.node(child).entry.path.view()));
  return all;
}

// By path "a-b" lies between the folder "a" and what is in it.
TEST_F(ViewTreeTest, HasTheChildrenOfEachFolder) {
  Entry link = entry("a/z");
  link.link_to = "a/b";
  auto tree = read({entry("", EntryType::Folder), entry("a", EntryType::Folder), entry("a-b"),
                    entry("a/b", EntryType::File, 20 * kMiB), entry("a/c", EntryType::Folder),
                    entry("a/c/d", EntryType::File, 1), link});
  ASSERT_OK(tree);
  EXPECT_THAT(names(*tree, 0), testing::ElementsAre("a", "a-b"));
  const NodeNumber a = *tree->child(0, "a");
  EXPECT_THAT(names(*tree, a), testing::ElementsAre("b", "c", "z"));
  EXPECT_FALSE(tree->child(a, "a"));
  EXPECT_FALSE(tree->child(a, ""));
  EXPECT_FALSE(tree->child(*tree->child(0, "a-b"), "x"));
  EXPECT_EQ(tree->node(a).links, 3U);
  const NodeNumber b = *tree->child(a, "b"), z = *tree->child(a, "z");
  EXPECT_EQ(tree->node(z).file, b);
  EXPECT_EQ(tree->node(b).links, 2U);
  EXPECT_EQ(tree->node(*tree->child(*tree->child(a, "c"), "d")).folder, *tree->child(a, "c"));
}

TEST_F(ViewTreeTest, NumbersTheUnitsAsTheWorkerDoes) {
  auto tree = read({entry("", EntryType::Folder), entry("a"), entry("b", EntryType::File, 17 * kMiB + 1),
                    entry("c", EntryType::File, 1)});
  ASSERT_OK(tree);
  EXPECT_EQ(tree->node(*tree->child(0, "a")).first_unit, 0U);
  EXPECT_EQ(tree->node(*tree->child(0, "b")).first_unit, 1U);
  EXPECT_EQ(tree->node(*tree->child(0, "c")).first_unit, 19U);
  EXPECT_EQ(tree->units(), 20U);
}

TEST_F(ViewTreeTest, RefusesWhatIsNoTree) {
  EXPECT_KIND(read({entry("")}), Errc::Unsupported);
  EXPECT_KIND(read({entry("", EntryType::Folder), entry("a"), entry("a/b")}), Errc::Mismatch);
  Entry link = entry("b");
  link.link_to = "a";
  EXPECT_KIND(read({entry("", EntryType::Folder), entry("a", EntryType::Folder), link}), Errc::Mismatch);
}

}  // namespace
}  // namespace spark::staging::test
