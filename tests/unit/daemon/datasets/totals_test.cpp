// The counters for /metrics.
#include "tests/unit/daemon/datasets/fixture.hpp"

namespace spark::datasets {
namespace {

TEST_F(DatasetsTest, CountsStagingsByResult) {
  worker.on("stage", R"(case $n in
1) echo '{"result": {"path": "/c/1", "served_from": "copied", "generation": 1, "bytes": 500, "files": 1,
   "resumed_bytes": 100, "unchanged_bytes": 50, "seconds": 2.5}}' | tr -d '\n'; echo ;;
2) echo '{"result": {"path": "/c/1", "served_from": "cache", "generation": 1, "bytes": 500, "files": 1}}' ;;
3) echo '{"error": {"kind": "no_space", "what": "too large", "hint": ""}}' ;;
*) sleep 600 ;;
esac)");
  start();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(ends(stage()));
  const auto cancelled = stage();
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("stage") == 4; }));
  ASSERT_TRUE(cancelled->cancel());
  ASSERT_TRUE(run_until(context, [&] { return datasets->stages().empty(); }));

  const Totals& totals = datasets->totals();
  EXPECT_EQ(totals.copied, 1u);
  EXPECT_EQ(totals.copied_bytes, 350u) << "what an attempt before had copied does not count again";
  EXPECT_EQ(totals.copied_seconds, 2.5);
  EXPECT_EQ(totals.from_cache, 1u);
  EXPECT_EQ(totals.failed, 1u);
  EXPECT_EQ(totals.cancelled, 1u);
}

TEST_F(DatasetsTest, CountsEvictionsByReason) {
  worker.on("stage", R"(echo '{"result": {"path": "/c/1", "served_from": "copied", "bytes": 5,)"
                     R"( "evicted": [{"name": "a", "bytes": 30}, {"name": "b", "bytes": 12}]}}')");
  start();
  ASSERT_TRUE(ends(stage()));
  const auto evicted = datasets->upkeep().evict("imagenet");
  ASSERT_TRUE(evicted) << evicted.error().message();
  ASSERT_TRUE(ends(*evicted));
  EXPECT_EQ(datasets->totals().evicted_for_room, 2u);
  EXPECT_EQ(datasets->totals().evicted_for_room_bytes, 42u);
  EXPECT_EQ(datasets->totals().evicted_by_request, 1u);
  EXPECT_EQ(datasets->totals().evicted_by_request_bytes, 5u);
}

TEST_F(DatasetsTest, CountsVerificationsByResult) {
  worker.on("verify", R"(case $n in
1) echo '{"result": {"dataset": "imagenet", "bytes": 5, "files": 1, "seconds": 0.5}}' ;;
2) echo '{"error": {"kind": "mismatch", "what": "f differs", "hint": ""}}' ;;
*) echo '{"error": {"kind": "unavailable", "what": "the drive is gone", "hint": ""}}' ;;
esac)");
  start();
  for (int i = 0; i < 3; ++i) {
    const auto job = datasets->upkeep().verify("imagenet", false);
    ASSERT_TRUE(job) << job.error().message();
    ASSERT_TRUE(ends(*job));
  }
  EXPECT_EQ(datasets->totals().found_good, 1u);
  EXPECT_EQ(datasets->totals().found_damaged, 1u);
  EXPECT_EQ(datasets->totals().not_readable, 1u);
}

}  // namespace
}  // namespace spark::datasets
