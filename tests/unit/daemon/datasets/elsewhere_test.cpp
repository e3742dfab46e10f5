// A dataset that has no source on this host: other hosts have it.
#include "tests/unit/daemon/datasets/patience_fixture.hpp"

namespace spark::datasets {
namespace {

using testing::HasSubstr;

constexpr char kSilent[] =
    R"(echo '{"error": {"kind": "unavailable", "what": "no peer that answers has it", "hint": "", "is_away": true}}')";

class ElsewhereTest : public PatienceTest {
 protected:
  ElsewhereTest() {
    settings.datasets["imagenet"].path.clear();
    timings.peers = Duration(10);
  }
};

TEST_F(ElsewhereTest, ItsWorkerReadsNoSource) {
  start();
  ASSERT_TRUE(ends(ask(Duration(0))));
  EXPECT_THAT(text_of("stages.log"), HasSubstr(R"("path":"")"));
  EXPECT_THAT(text_of("stages.log"), HasSubstr(R"("away":true,"at_peers":true)"));
}

TEST_F(ElsewhereTest, ARequestThatDoesNotWaitFailsWithWhatThePeersSaid) {
  worker.on("stage", kSilent);
  start();
  const auto job = ask(Duration(0));
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "unavailable");
  EXPECT_THAT(what_of(job), HasSubstr("staging imagenet: no peer that answers has it"));
  EXPECT_THAT(json::serialize(job->final_event()), HasSubstr("--offline"));
}

TEST_F(ElsewhereTest, ARequestThatWaitsGoesOnOnceAPeerIsBack) {
  worker.on("stage", std::string("if [ $n -lt 8 ]; then ") + kSilent + "; else " + staged() + "; fi");
  start();
  const auto job = ask(std::nullopt);
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "done");
}

// More often than a source that looks healthy is tried.
TEST_F(ElsewhereTest, APeerThatGoesDuringTheCopyIsWaitedFor) {
  worker.on("stage", "if [ $n -lt 8 ]; then " + lines({kBegun, kSilent}) + "; else " + staged() + "; fi");
  start();
  const auto job = ask(Duration(0));
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "done");
}

TEST_F(ElsewhereTest, WhilePeersAreAwayTheCopyThatIsHereMayStandIn) {
  worker.on("stage", kSilent);
  start();
  const auto job = ask(Duration(0), true);
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "done");
  EXPECT_EQ(get_string(result_of(job), "path"), "/c/2");
  EXPECT_THAT(get_string(result_of(job), "unchecked").value_or(""), HasSubstr("no peer that answers"));
}

}  // namespace
}  // namespace spark::datasets
