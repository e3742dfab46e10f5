// Live views whose source changes, and which requests get which.
#include "tests/unit/daemon/datasets/live_fixture.hpp"

namespace spark::datasets {
namespace {

using LiveSetsTest = LiveTest;

// The copy that was published is of another state of the source than the view.
TEST_F(LiveSetsTest, ACopyOfAnotherSetIsNeitherShownNorLeased) {
  worker.on("show-copy",
            note_request("show-copy.log") +
                "echo '{\"error\": {\"kind\": \"refused\", \"what\": \"another set\", \"hint\": \"\"}}'");
  start_empty();
  const auto job = stage_now();
  ASSERT_TRUE(ends(job));
  touch("go");
  ASSERT_TRUE(happens("show-copy"));
  ASSERT_TRUE(run_until(context, [&] { return datasets->stages().empty(); }));
  context.run_for(Duration(200));
  EXPECT_EQ(leased_generation(), 0U);
  ASSERT_TRUE(datasets->leases().release(*get_string(dataset_of(job), "lease")));
  ASSERT_TRUE(has("removed"));
}

// Its set may have changed: then the view that there is fails, and the request gets another.
TEST_F(LiveSetsTest, ARequestWaitsUntilTheCopyThatBeganAgainHasBeenWalked) {
  worker.on("stage", note_request("stages.log") +
                         "case $n in 1) echo '{\"progress\": {\"readable\": true}}';; "
                         "2) while [ ! -e walked ]; do sleep 0.02; done; "
                         "echo '{\"progress\": {\"view_failed\": \"it has changed\", \"whole\": true}}';; "
                         "*) echo '{\"progress\": {\"readable\": true}}';; esac; " +
                         std::string(kBegun) + "; while [ ! -e go ]; do sleep 0.02; done; " + staged());
  start_empty();
  ASSERT_TRUE(ends(stage_now(100)));
  const auto next = stage_now(200);
  ASSERT_TRUE(happens("stage", 2));
  context.run_for(Duration(200));
  EXPECT_TRUE(next->is_running());
  touch("walked");
  ASSERT_TRUE(ends(next));
  EXPECT_EQ(get_string(dataset_of(next), "state"), "live");
  EXPECT_EQ(worker.calls("serve-view"), 2);
  EXPECT_EQ(times("ended"), 0) << "the first job has its own still";
}

TEST_F(LiveSetsTest, AViewOfAnEarlierWalkSaysSo) {
  start_empty();
  const auto first = stage_now(), second = stage_now();
  ASSERT_TRUE(ends(first));
  const auto third = stage_now();
  ASSERT_TRUE(ends(second) && ends(third));
  EXPECT_TRUE(get_array(dataset_of(second), "warnings")->empty()) << "the walk began after it";
  ASSERT_EQ(get_array(dataset_of(third), "warnings")->size(), 1U);
  EXPECT_NE(get_array(dataset_of(third), "warnings")
                ->front()
                .as_string()
                .find(*get_string(dataset_of(third), "walked_at")),
            std::string::npos);
}

TEST_F(LiveSetsTest, AUserHasAShareOfTheViewsAndRootARest) {
  for (int i = 0; i < 65; ++i) {
    config::Dataset dataset = settings.datasets["imagenet"];
    dataset.name = "d" + std::to_string(i);
    settings.datasets[dataset.name] = dataset;
  }
  start_empty();
  for (int i = 0; i < 65; ++i) (void)stage_now(0, 7, "d" + std::to_string(i));
  (void)stage_now();
  ASSERT_TRUE(happens("serve-view"));
  EXPECT_FALSE(get_string(row_of("d63"), "reason"));
  EXPECT_THAT(get_string(row_of("d64"), "reason").value_or(""),
              testing::EndsWith("live views already, 64 of user 7"));
  EXPECT_FALSE(get_string(row_of("imagenet"), "reason"));
}

}  // namespace
}  // namespace spark::datasets
