// What peers offer in place of a good copy.
#include "staging/cache/cache.hpp"
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

}  // namespace
}  // namespace spark::staging
