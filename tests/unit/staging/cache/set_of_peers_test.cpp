// What peers offer in place of a good copy.
#include "staging/cache/cache.hpp"
#include "staging/cache/folder/cache_folder.hpp"
#include "staging/copy/clone.hpp"
#include "staging/manifest/manifest_reader.hpp"
#include "tests/unit/staging/cache/cache_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

class SetOfPeersTest : public CacheTest {};

// A host that offers a mount point without its drive.
TEST_F(SetOfPeersTest, AnEmptySetOfPeersDoesNotReplaceACopy) {
  options_.replaces = Replaces::SameSource;
  write_text(source_.path / "f", "one");
  ASSERT_OK(stage());
  Model empty;
  empty.walked.entries.emplace_back();
  empty.walked.entries.back().type = EntryType::Folder;
  empty.walked.entries.back().mode = 0755;
  source_.path = "peers:set";
  source_.is_away = true;
  source_.elsewhere = CopyElsewhere{summary_of(empty.walked.entries).hash, [&] { return empty; }};
  const auto refused = stage();
  EXPECT_KIND(refused, Errc::Refused);
  EXPECT_TRUE(!refused && refused.error().is_away) << "a copy that is here may stand in";
  EXPECT_EQ(read_text(link() / "f"), "one");
  ASSERT_OK(open()->evict("set"));
  EXPECT_KIND(stage(), Errc::Refused);
  options_.replaces = Replaces::Anything;
  ASSERT_OK(stage());
}

// Its list has the hash, which decides: another host's identity of a file may have been made up.
TEST_F(SetOfPeersTest, AFileWhoseWantedHashDiffersIsNotShared) {
  write_text(source_.path / "f", "one");
  ASSERT_OK(stage());
  const Destination copy = CacheFolder(config_.path).place("set", 1);
  const auto area = PartialArea::try_open(CacheFolder(config_.path).partial("set"));
  ASSERT_OK(area);
  std::filesystem::create_directories(area->data());
  auto tree = open_tree(copy.path());
  ASSERT_OK(tree);
  const Previous previous{std::move(*tree), copy.manifest()};
  auto manifest = ManifestReader::open(copy.manifest());
  ASSERT_OK(manifest);
  Entries listed;
  while (auto entry = manifest->next()) listed.push_back(std::move(*entry));
  const auto shares = [&](Digest wanted) {
    Entries entries = listed;
    entries.back().hash = wanted;
    Resumed resumed{std::vector<bool>(entries.size()), std::vector<bool>(entries.size()), {}, 0};
    find_unchanged(previous, *area, entries, resumed);
    return static_cast<bool>(resumed.unchanged.back());
  };
  const Digest known = listed.back().hash;
  EXPECT_TRUE(shares(known));
  EXPECT_TRUE(shares({})) << "a walk knows none";
  EXPECT_FALSE(shares({known.high, known.low ^ 1}));
}

}  // namespace
}  // namespace spark::staging
