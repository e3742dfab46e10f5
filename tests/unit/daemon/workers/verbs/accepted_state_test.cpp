#include "tests/unit/daemon/workers/verbs/stage_out_fixture.hpp"

namespace spark::workers {
namespace {

using namespace staging::test;

TEST_F(StageOutVerb, WithoutAStateOfTheSourceNothingIsSent) {
  EXPECT_KIND(stage_out_verb(request(), kNoProgress), Errc::Invalid);
  EXPECT_FALSE(std::filesystem::exists(run_ / "step-1"));
}

// Hours may be between the two: the volume was away.
TEST_F(StageOutVerb, OnlyTheStateThatWasFlushedIsSentAlsoByALinkToTheSource) {
  std::filesystem::create_symlink(source_, folder_ / "same");
  for (const std::filesystem::path& source : {source_, folder_ / "same"}) {
    write_text(source_ / "optimizer", "x");
    json::object asked = request();
    asked["source"] = source.native();
    const auto flushed = flush_source_verb({{"source", source.native()}, {"uid", ::geteuid()}}, kNoProgress);
    ASSERT_TRUE(flushed) << flushed.error().message();
    asked["written"] = flushed->at("written");
    ASSERT_OK(stage_out_verb(asked, kNoProgress));
    std::filesystem::remove(source_ / "optimizer");
    EXPECT_KIND(stage_out_verb(asked, kNoProgress), Errc::Mismatch);
    EXPECT_EQ(read_text(run_ / "step-1/optimizer"), "x");
  }
  const auto nothing = flush_source_verb({{"source", "/no/such"}, {"uid", ::geteuid()}}, kNoProgress);
  ASSERT_TRUE(nothing) << "stage-out says why it can't be sent";
  EXPECT_EQ(nothing->at("written"), 0);
}

}  // namespace
}  // namespace spark::workers
