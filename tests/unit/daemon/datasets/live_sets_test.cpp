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

TEST_F(LiveSetsTest, AJobsLimitHoldsAsLongAsItHasTheView) {
  start_empty();
  const auto slow = stage_now(100);
  ASSERT_TRUE(ends(slow));
  const auto quick = stage_now(200);
  ASSERT_TRUE(ends(quick));
  EXPECT_TRUE(is_noted("stages", "\"max_rate\":200"));
  context.run_for(Duration(200));
  EXPECT_EQ(worker.calls("stage"), 2) << "once for the higher limit";
  ASSERT_TRUE(datasets->leases().release(*get_string(dataset_of(quick), "lease")));
  ASSERT_TRUE(happens("stage", 3)) << "the first job's limit";
  ASSERT_TRUE(datasets->leases().release(*get_string(dataset_of(slow), "lease")));
  ASSERT_TRUE(has("removed"));
}

TEST_F(LiveSetsTest, WhyASetCanHaveNoViewIsListedAtOnce) {
  worker.on("stage", note_request("stages.log") +
                         "echo '{\"progress\": {\"no_view\": \"a folder has an ACL\"}}'; " +
                         std::string(kBegun) + "; while [ ! -e go ]; do sleep 0.02; done; " + staged());
  start_empty();
  const auto job = stage_now();
  ASSERT_TRUE(run_until(context, [&] {
    return get_text(row_of("imagenet"), "reason").find("a folder has an ACL") != std::string::npos;
  }));
  EXPECT_TRUE(job->is_running());
  touch("go");
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(get_string(dataset_of(job), "state"), "ready");
}

// A job that starts now has to know it.
TEST_F(LiveSetsTest, FilesThatHaveFailedAreToldToTheNextJob) {
  worker.on("stage",
            note_request("stages.log") + "echo '{\"progress\": {\"readable\": true}}'; " +
                std::string(kBegun) +
                "; echo '{\"progress\": {\"view_failed\": \"b: it has changed\", \"whole\": false}}'; "
                "while [ ! -e go ]; do sleep 0.02; done; " +
                staged());
  start_empty();
  ASSERT_TRUE(ends(stage_now()));
  ASSERT_TRUE(run_until(context, [&] {
    return get_text(row_of("imagenet"), "reason").find("b: it has") != std::string::npos;
  }));
  const auto next = stage_now();
  ASSERT_TRUE(ends(next));
  const json::object found = dataset_of(next);
  ASSERT_EQ(get_array(found, "warnings")->size(), 2U);
  EXPECT_EQ(get_array(found, "warnings")->back().as_string(), "b: it has changed");
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

// As in a container that may not mount.
TEST_F(LiveSetsTest, ACopyBeginsAgainOnceForAViewThatCannotBeMounted) {
  worker.on("serve-view", note_request("serve-view.log") +
                              "echo '{\"error\": {\"kind\": \"denied\", \"what\": \"it can not be "
                              "mounted\", \"hint\": \"\"}}'");
  start_empty();
  const auto plain = stage();
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "copying"; }));
  for (int i = 0; i < 4; ++i) {
    const auto job = stage_now();
    ASSERT_TRUE(ends(job));
    EXPECT_EQ(kind_of(job), "failed");
  }
  EXPECT_EQ(worker.calls("stage"), 3) << "for the first view, and for one more";
  EXPECT_TRUE(plain->is_running());
  touch("go");
  ASSERT_TRUE(ends(plain));
  EXPECT_EQ(kind_of(plain), "done");
}

TEST_F(LiveSetsTest, ACopyOfOneFileOrAModelDoesNotBeginAgain) {
  worker.on("stage", note_request("stages.log") +
                         "echo '{\"progress\": {\"walked\": true, \"one_file\": "
                         "true}}'; " +
                         std::string(kBegun) + "; while [ ! -e go ]; do sleep 0.02; done; " + staged());
  settings.datasets["models"].volume = "another";
  settings.datasets["models"].model.emplace();
  start_empty();
  const auto one = stage_all({"imagenet"}), other = stage_all({"models"});
  ASSERT_TRUE(run_until(
      context, [&] { return state_of("imagenet") == "copying" && state_of("models") == "copying"; }));
  const auto first = stage_now(), second = stage_now(0, 0, "models");
  context.run_for(Duration(200));
  EXPECT_EQ(worker.calls("stage"), 2) << "they can have no view";
  touch("go");
  for (const auto& job : {one, other, first, second}) ASSERT_TRUE(ends(job));
  EXPECT_EQ(get_string(dataset_of(first), "state"), "ready");
}

TEST_F(LiveSetsTest, ACopyThatIsBeingFlushedDoesNotBeginAgain) {
  worker.on("stage", note_request("stages.log") +
                         "echo '{\"progress\": {\"phase\": \"flushing\", \"bytes_done\": 9, "
                         "\"bytes_total\": 9}}'; while [ ! -e go ]; do sleep 0.02; done; " +
                         staged());
  start_empty();
  const auto plain = stage();
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "flushing"; }));
  const auto job = stage_now();
  context.run_for(Duration(200));
  EXPECT_EQ(worker.calls("stage"), 1);
  touch("go");
  ASSERT_TRUE(ends(plain) && ends(job));
  EXPECT_EQ(get_string(dataset_of(job), "state"), "ready");
}

TEST_F(LiveSetsTest, ALiveDatasetIsListedBesideItsEarlierCopy) {
  start();  // with a copy
  ASSERT_TRUE(ends(stage_now()));
  const json::object row = row_of("imagenet");
  EXPECT_EQ(get_string(row, "state"), "ready");
  EXPECT_EQ(get_string(row, "path"), "/c/1");
  EXPECT_FALSE(row.contains("bytes_here"));
  const json::object* live = get_object(row, "live");
  ASSERT_NE(live, nullptr);
  EXPECT_EQ(get_string(*live, "path"), "/live/imagenet");
  EXPECT_EQ(get_int(*live, "bytes_here"), 5);
}

// They are known once it has been walked, and a later attempt may find others.
TEST_F(LiveSetsTest, WhatAViewDoesNotShowIsToldWithIt) {
  worker.on("stage", note_request("stages.log") +
                         "echo '{\"progress\": {\"walked\": true, \"one_file\": false, \"skipped\": [\"pipe "
                         "(FIFO)\"], \"warnings\": [\"w\"], \"outside_links\": 2}}'; "
                         "echo '{\"progress\": {\"readable\": true}}'; " +
                         std::string(kBegun) + "; while [ ! -e go ]; do sleep 0.02; done; " + staged());
  start_empty();
  const auto job = stage_now();
  ASSERT_TRUE(ends(job));
  const json::object live = dataset_of(job);
  EXPECT_EQ(get_strings(live, "skipped"), std::vector<std::string>{"pipe (FIFO)"});
  EXPECT_EQ(get_strings(live, "warnings"), std::vector<std::string>{"w"});
  EXPECT_EQ(get_int(live, "outside_links"), 2);
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
