#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "daemon/workers/verbs/verbs.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::workers {
namespace {

using namespace staging::test;
using testing::HasSubstr;

class StageOutVerb : public testing::Test {
 protected:
  StageOutVerb() { write_text(source_ / "shard", noise(100'000, 1)); }
  json::object request() const {
    return {{"source", source_.native()},
            {"root", folder_.path().native()},
            {"mount", ""},
            {"path", "run/step-1"},
            {"uid", ::geteuid()},
            {"threads", 1},
            {"depth", 4},
            {"chunk", 1 << 20}};
  }

  TempFolder folder_;
  const std::filesystem::path source_ = folder_ / "source", run_ = folder_ / "run";
};

// A retry could publish, or replace, while or after the other host does.
TEST_F(StageOutVerb, ACopyWhoseLockAnotherHostTookOverFailsForGood) {
  const auto lock = run_ / ".step-1.spark-partial/lock";
  const auto sent = stage_out_verb(request(), [&](const json::object&) {
    if (std::filesystem::exists(lock)) write_text(lock, "beta\nits-boot\n");
  });
  ASSERT_TRUE(sent) << sent.error().message();
  EXPECT_EQ(get_string(*sent, "state"), "failed");
  const json::object* error = get_object(*sent, "error");
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(get_string(*error, "kind"), "unavailable");
  EXPECT_THAT(get_string(*error, "what").value_or(""), HasSubstr("taken over by host beta"));
  EXPECT_FALSE(std::filesystem::exists(run_ / "step-1"));
}

TEST_F(StageOutVerb, AShardWhoseCheckpointWasReplacedFailsForGoodAndNamesTheNewerOne) {
  const auto ignored = [](const json::object&) {};
  json::object sharded = request();
  sharded["nodes"] = 2;
  sharded["shard_sent_ns"] = 0;
  const auto first = stage_out_verb(sharded, ignored);
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_EQ(get_string(*first, "state"), "waiting");
  sharded["shard_sent_ns"] = first->at("shard_sent_ns");
  std::filesystem::remove_all(run_ / ".step-1.spark-shards");
  json::object newer = request();
  newer["path"] = "run/step-2";
  ASSERT_TRUE(stage_out_verb(newer, ignored));
  const auto again = stage_out_verb(sharded, ignored);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(get_string(*again, "state"), "failed");
  const json::object* error = get_object(*again, "error");
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(get_string(*error, "kind"), "failed");
  EXPECT_THAT(get_string(*error, "what").value_or(""), HasSubstr("step-2 replaced it before all hosts"));
}

}  // namespace
}  // namespace spark::workers
