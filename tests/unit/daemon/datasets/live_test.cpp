// Requests that take a dataset while it is staged.
#include <signal.h>

#include "tests/unit/daemon/datasets/live_fixture.hpp"

namespace spark::datasets {
namespace {

TEST_F(LiveTest, TheRequestEndsWithTheViewAndTheStagingGoesOn) {
  start_empty();
  const auto job = stage_now();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(get_string(dataset_of(job), "state"), "live");
  EXPECT_EQ(get_string(dataset_of(job), "path"), "/live/imagenet");
  EXPECT_EQ(get_int(dataset_of(job), "bytes_here"), 5);
  EXPECT_EQ(state_of("imagenet"), "live");
  EXPECT_EQ(leased_generation(), 0U);
  EXPECT_NE(text_of("stages.log").find("\"view\":"), std::string::npos);
  EXPECT_EQ(worker.calls("show-copy"), 0);
  touch("go");
  ASSERT_TRUE(happens("show-copy"));
  EXPECT_TRUE(is_noted("show-copy", "\"copy\":\"/c/1\""));
  EXPECT_TRUE(is_leased(1));
  EXPECT_EQ(times("ended"), 0);
  ASSERT_TRUE(datasets->leases().release(*get_string(dataset_of(job), "lease")));
  ASSERT_TRUE(has("removed"));
  EXPECT_EQ(times("failed"), 0);
}

TEST_F(LiveTest, AProcessThatEndsIsReplacedAndTakesOver) {
  start_empty();
  ASSERT_TRUE(ends(stage_now()));
  touch("killed");
  ASSERT_TRUE(happens("serve-view", 2));
  EXPECT_TRUE(is_noted("serve-view", "\"taken_over\":false"));
  EXPECT_TRUE(is_noted("serve-view", "\"taken_over\":true"));
  EXPECT_EQ(state_of("imagenet"), "live");
}

TEST_F(LiveTest, WithoutResendTheConnectionEndsWithItsProcess) {
  serve_view(false);
  start_empty();
  ASSERT_TRUE(ends(stage_now()));
  touch("killed");
  ASSERT_TRUE(has("removed"));
  EXPECT_EQ(worker.calls("serve-view"), 1);
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "copying"; }));
  const auto again = stage_now();
  ASSERT_TRUE(ends(again));
  EXPECT_EQ(get_string(dataset_of(again), "state"), "live") << "with a view of its own";
  EXPECT_EQ(worker.calls("serve-view"), 2);
}

TEST_F(LiveTest, AStagingThatFailsFailsTheView) {
  stage_until_full("go");
  start_empty();
  const auto job = stage_now();
  ASSERT_TRUE(ends(job));
  touch("go");
  ASSERT_TRUE(has("failed"));
  EXPECT_TRUE(is_noted("end-view", "it is full"));
  EXPECT_EQ(times("ended"), 0) << "what is here can be read as long as the job has its lease";
  ASSERT_TRUE(datasets->leases().release(*get_string(dataset_of(job), "lease")));
  ASSERT_TRUE(has("removed"));
}

TEST_F(LiveTest, TheStagingEndsWithItsLastLease) {
  start_empty();
  const auto job = stage_now();
  ASSERT_TRUE(ends(job));
  ASSERT_TRUE(datasets->leases().release(*get_string(dataset_of(job), "lease")));
  ASSERT_TRUE(has("removed"));
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "absent"; }));
}

TEST_F(LiveTest, AStagingUnderWayBeginsAgainForItsView) {
  worker.on("stage",
            "read -r request; printf '%s\\n' \"$request\" >> stages.log; "
            "case $request in *\\\"view\\\":*) echo '{\"progress\": {\"readable\": true}}';; esac; " +
                std::string(kBegun) + "; while [ ! -e go ]; do sleep 0.02; done; " + staged());
  start_empty();
  const auto first = stage();
  ASSERT_TRUE(happens("stage"));
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "copying"; }));
  ASSERT_TRUE(ends(stage_now()));
  EXPECT_TRUE(first->is_running());
  touch("go");
  ASSERT_TRUE(ends(first));
  EXPECT_EQ(get_string(dataset_of(first), "state"), "ready");
}

// A server that dies of the request that it gets again and again: its readers get an error in the end.
TEST_F(LiveTest, AProcessThatBeginsAndDiesIsNotStartedForever) {
  views = {Duration(10), Duration(20), Duration(300), Duration(1000)};
  worker.on("serve-view",
            "cat > /dev/null; echo '{\"progress\": {\"folder\": \"/live/imagenet\", \"can_resend\": true}}'; "
            "sleep 0.05; kill -9 $$");
  start_empty();
  ASSERT_TRUE(ends(stage_now()));
  ASSERT_TRUE(has("removed"));
  EXPECT_GT(worker.calls("serve-view"), 2);
}

TEST_F(LiveTest, AViewThatCannotBeFailedLosesItsConnection) {
  kept.manager = &manager;
  stage_until_full("go");
  end_view(
      "case $request in *'\"reason\"'*) echo '{\"error\": {\"kind\": \"not_found\", \"what\": \"no map\", "
      "\"hint\": \"\"}}'; exit;; esac; ");
  start_empty();
  ASSERT_TRUE(ends(stage_now()));
  touch("go");
  ASSERT_TRUE(has("removed")) << "its process was ended";
  EXPECT_EQ(manager.kept.size(), 1U);
  EXPECT_EQ(manager.forgotten, manager.kept);
}

// Beside a job that uses the view; the copy is complete a moment later.
TEST_F(LiveTest, ALeaseThatEndsWhileOthersGetTheCopyStaysEnded) {
  start_empty();
  const auto first = stage_now(), second = stage_now();
  ASSERT_TRUE(ends(first) && ends(second));
  const std::string one = *get_string(dataset_of(first), "lease"),
                    other = *get_string(dataset_of(second), "lease");
  worker.on("lease",
            note_request("leases.log") +
                "case $request in *'\"generation\":1'*) while [ ! -e granted ]; do sleep 0.02; done;; esac; "
                R"(echo '{"result": {"leases": []}}')");
  touch("go");
  ASSERT_TRUE(run_until(context, [&] { return leased_generation() == 1; }));
  const auto leases = datasets->leases().of("imagenet");
  const std::string last = leases.front()->generation == 1 && leases.front()->id == one ? other : one;
  ASSERT_TRUE(datasets->leases().release(last));
  touch("granted");
  context.run_for(Duration(200));
  ASSERT_EQ(datasets->leases().of("imagenet").size(), 1U);
  EXPECT_NE(datasets->leases().of("imagenet").front()->id, last);
}

TEST_F(LiveTest, ARequestThatComesWhileTheViewEndsGetsAnother) {
  end_view("case $request in *detach*) while [ ! -e ends ]; do sleep 0.02; done;; esac; ");
  start_empty();
  const auto job = stage_now();
  ASSERT_TRUE(ends(job));
  ASSERT_TRUE(datasets->leases().release(*get_string(dataset_of(job), "lease")));
  ASSERT_TRUE(happens("end-view"));
  const auto next = stage_now();
  touch("ends");
  ASSERT_TRUE(ends(next));
  EXPECT_EQ(get_string(dataset_of(next), "state"), "live");
  EXPECT_EQ(worker.calls("serve-view"), 2);
  ASSERT_TRUE(has("removed"));
  EXPECT_EQ(times("failed"), 0);
  EXPECT_EQ(state_of("imagenet"), "live");
}

// Its process reads the tree, which takes minutes for millions of entries.
TEST_F(LiveTest, AViewThatHasNotAnsweredEndsWithItsRequest) {
  worker.on("serve-view", "cat > /dev/null; echo $$ > server; exec sleep 100");
  start_empty();
  const auto job = stage_now();
  ASSERT_TRUE(run_until(context, [&] { return !text_of("server").empty(); }));
  const pid_t server = std::stoi(text_of("server"));
  ASSERT_TRUE(job->cancel());
  ASSERT_TRUE(has("removed"));
  EXPECT_NE(::kill(server, 0), 0);
  EXPECT_EQ(times("ended"), 0);
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "absent"; }));
  serve_view(true);
  const auto next = stage_now();
  ASSERT_TRUE(ends(next));
  EXPECT_EQ(get_string(dataset_of(next), "state"), "live");
}

TEST_F(LiveTest, AViewThatHasNotAnsweredEndsWithTheFailureOfItsStaging) {
  worker.on("serve-view", "cat > /dev/null; echo x > server; exec sleep 100");
  stage_until_full("server");
  start_empty();
  const auto job = stage_now();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "no_space");
  ASSERT_TRUE(has("removed"));
}

// Of its source's next state, while the first job still reads the copy of the earlier one.
TEST_F(LiveTest, AnotherStagingHasAViewOfItsOwn) {
  start_empty();
  const auto first = stage_now();
  ASSERT_TRUE(ends(first));
  touch("go");
  ASSERT_TRUE(happens("show-copy"));
  ASSERT_TRUE(run_until(context, [&] { return datasets->stages().empty(); }));
  std::filesystem::remove(worker.folder() / "go");
  const auto second = stage_now();
  ASSERT_TRUE(ends(second));
  EXPECT_EQ(get_string(dataset_of(second), "state"), "live");
  EXPECT_EQ(worker.calls("serve-view"), 2);
  EXPECT_EQ(times("ended"), 0);
  ASSERT_TRUE(datasets->leases().release(*get_string(dataset_of(second), "lease")));
  ASSERT_TRUE(has("removed")) << "a lease on another generation does not keep it";
  ASSERT_TRUE(run_until(context, [&] { return datasets->stages().empty(); })) << "nor its staging";
  EXPECT_EQ(times("ended"), 1);
  ASSERT_TRUE(datasets->leases().release(*get_string(dataset_of(first), "lease")));
  ASSERT_TRUE(has("removed", 2));
}

// As a program beside the job that has ended.
TEST_F(LiveTest, WhatIsStillOpenKeepsItsCopyAndDelaysNoOtherView) {
  serve_view(true);
  end_view("");
  worker.on("serve-view",
            note_request("serve-view.log") +
                "echo '{\"progress\": {\"folder\": \"/live/imagenet\", \"can_resend\": true}}'; "
                "while [ ! -e closed ]; do sleep 0.02; done; echo '{\"result\": {}}'");
  start_empty();
  const auto first = stage_now();
  ASSERT_TRUE(ends(first));
  touch("go");
  ASSERT_TRUE(happens("show-copy"));
  ASSERT_TRUE(run_until(context, [&] { return datasets->stages().empty(); }));
  std::filesystem::remove(worker.folder() / "go");
  ASSERT_TRUE(datasets->leases().release(*get_string(dataset_of(first), "lease")));
  ASSERT_TRUE(has("ended"));
  worker.on("catalog", "printf '%s\\n' '{\"result\": " + one_line(kRows) + "}'");
  const auto evicted = datasets->upkeep().evict("imagenet");
  ASSERT_TRUE(evicted);
  ASSERT_TRUE(ends(*evicted));
  EXPECT_EQ(kind_of(*evicted), "refused");
  const auto moved = datasets->cache_place().move("/new", LastCopies::Brought, {});
  ASSERT_FALSE(moved);
  EXPECT_THAT(moved.error().what,
              testing::EndsWith("programs use the live view of imagenet, or have files of it "
                                "open still"));
  const auto second = stage_now();
  ASSERT_TRUE(ends(second));
  EXPECT_EQ(get_string(dataset_of(second), "state"), "live");
  EXPECT_TRUE(is_noted("stages", R"({"dataset":"imagenet","generation":1})")) << "no room is made by it";
  touch("closed");
  ASSERT_TRUE(has("removed", 2));
}

// Somebody has unmounted it by force.
TEST_F(LiveTest, AViewThatEndsByItselfSaysSo) {
  serve_view(true);
  worker.on("serve-view",
            "cat > /dev/null; echo '{\"progress\": {\"folder\": \"/live/imagenet\", "
            "\"can_resend\": true}}'; while [ ! -e closed ]; do sleep 0.02; done; "
            "echo '{\"result\": {}}'");
  start_empty();
  ASSERT_TRUE(ends(stage_now()));
  touch("closed");
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "copying"; }));
  EXPECT_EQ(get_string(row_of("imagenet"), "reason"),
            "its file system was unmounted, or its connection aborted");
}

TEST_F(LiveTest, AFileThatFailsIsNamed) {
  worker.on("stage",
            "cat > /dev/null; echo '{\"progress\": {\"readable\": true, \"bytes_total\": 7, \"files_total\": "
            "2}}'; " +
                std::string(kBegun) +
                "; while [ ! -e fails ]; do sleep 0.02; done; "
                "echo '{\"progress\": {\"view_failed\": \"b has changed\"}}'; "
                "echo '{\"progress\": {\"view_failed\": \"c has changed\"}}'; "
                "while [ ! -e go ]; do sleep 0.02; done; " +
                staged());
  start_empty();
  const auto job = stage_now();
  ASSERT_TRUE(ends(job));
  EXPECT_FALSE(get_string(row_of("imagenet"), "reason"));
  touch("fails");
  ASSERT_TRUE(run_until(context, [&] {
    return get_string(row_of("imagenet"), "reason") == "b has changed; 2 files have failed";
  }));
  EXPECT_EQ(state_of("imagenet"), "live");
}

TEST_F(LiveTest, TheTotalsOfTheWalkComeWithTheView) {
  worker.on(
      "stage",
      "cat > /dev/null; echo '{\"progress\": {\"readable\": true, \"bytes_total\": 7, \"files_total\": 2}}'; "
      "while [ ! -e go ]; do sleep 0.02; done; " +
          staged());
  start_empty();
  const auto job = stage_now();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(get_int(dataset_of(job), "bytes"), 7);
  EXPECT_EQ(get_int(dataset_of(job), "files"), 2);
}

TEST_F(LiveTest, AViewOfAnotherStateOfTheSourceFailsAsAWhole) {
  worker.on("stage", "cat > /dev/null; echo '{\"progress\": {\"readable\": true}}'; " + std::string(kBegun) +
                         "; while [ ! -e fails ]; do sleep 0.02; done; "
                         "echo '{\"progress\": {\"view_failed\": \"it has changed\", \"whole\": true}}'; "
                         "while [ ! -e go ]; do sleep 0.02; done; " +
                         staged());
  start_empty();
  ASSERT_TRUE(ends(stage_now()));
  touch("fails");
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "copying"; }));
  EXPECT_EQ(get_string(row_of("imagenet"), "reason"), "it has changed");
  (void)stage_now();
  EXPECT_TRUE(happens("stage", 2)) << "for a view of the new state";
}

}  // namespace
}  // namespace spark::datasets
