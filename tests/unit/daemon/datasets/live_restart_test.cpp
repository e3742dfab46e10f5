// Live views that an earlier daemon has left.
#include <fcntl.h>
#include <unistd.h>

#include "tests/unit/daemon/datasets/live_fixture.hpp"

namespace spark::datasets {
namespace {

class EarlierDaemon : public LiveTest {
 protected:
  // With the connection of view 12. Its end shows in `there`.
  void SetUp() override {
    int ends_of_pipe[2];
    ASSERT_EQ(::pipe2(ends_of_pipe, O_CLOEXEC | O_NONBLOCK), 0);
    there = UniqueFd(ends_of_pipe[0]);
    kept.earlier = std::make_shared<std::map<std::string, UniqueFd>>();
    (*kept.earlier)["live-12"] = UniqueFd(ends_of_pipe[1]);
    kept.manager = &manager;
  }
  void find_view(const std::string& more) {
    worker.on("find-views", note_request("find-views.log") +
                                "echo '{\"result\": {\"views\": [{\"view\": 12, \"dataset\": \"imagenet\", "
                                "\"folder\": \"/live/imagenet\"" +
                                more + "}]}}'");
  }
  // Of a process that runs.
  void lease(int generation) {
    const staging::ProcessId own = staging::process_with(::getpid());
    worker.on("lease", note_request("leases.log") +
                           "case $request in *list*) echo '{\"result\": {\"leases\": [{\"id\": \"l1\", "
                           "\"dataset\": \"imagenet\", \"generation\": " +
                           std::to_string(generation) +
                           ", \"holder\": \"a test\", \"pid\": " + std::to_string(own.pid) +
                           ", \"pid_start_time\": " + std::to_string(own.start_time) +
                           "}]}}';; *) echo '{\"result\": {\"leases\": []}}';; esac");
  }
  UniqueFd there;
};

TEST_F(EarlierDaemon, ItsViewAndItsStagingGoOnAsTheyWereAskedFor) {
  find_view(R"(, "demand": {"max_rate": 100, "user": 7, "accept_source": true})");
  lease(0);
  start_empty();
  ASSERT_TRUE(happens("stage"));
  EXPECT_TRUE(is_noted("stages", "\"view\":12"));
  EXPECT_TRUE(is_noted("stages", "\"max_rate\":100"));
  EXPECT_TRUE(is_noted("stages", "\"accept_source\":true"));
  EXPECT_TRUE(is_noted("serve-view", "\"taken_over\":true"));
  touch("go");
  ASSERT_TRUE(happens("show-copy"));
  EXPECT_TRUE(is_leased(1));
  EXPECT_TRUE(manager.forgotten.empty());
  ASSERT_TRUE(datasets->leases().release("l1"));
  ASSERT_TRUE(has("removed"));
}

// Each attempt says it, and a file counts once.
TEST_F(EarlierDaemon, WhyAFileOfItsViewFailsIsListed) {
  find_view("");
  lease(0);
  const std::string again =
      "echo '{\"progress\": {\"view_failed\": \"b: it has changed\", \"again\": true}}'; ";
  worker.on("stage", note_request("stages.log") + "echo '{\"progress\": {\"readable\": true}}'; " + again +
                         again + std::string(kBegun) + "; while [ ! -e go ]; do sleep 0.02; done; " +
                         staged());
  start_empty();
  ASSERT_TRUE(
      run_until(context, [&] { return get_string(row_of("imagenet"), "reason") == "b: it has changed"; }));
  context.run_for(Duration(200));
  EXPECT_EQ(get_string(row_of("imagenet"), "reason"), "b: it has changed");
  touch("go");
  ASSERT_TRUE(happens("show-copy"));
  ASSERT_TRUE(datasets->leases().release("l1"));
  ASSERT_TRUE(has("removed"));
}

// Two stagings of one dataset would fail the view that its jobs read.
TEST_F(EarlierDaemon, ARequestThatComesBeforeTheViewIsKnownJoinsItsStaging) {
  worker.on("find-views",
            note_request("find-views.log") +
                "while [ ! -e answer ]; do sleep 0.02; done; echo '{\"result\": {\"views\": [{\"view\": 12, "
                "\"dataset\": \"imagenet\", \"folder\": \"/live/imagenet\"}]}}'");
  worker.on("catalog", "printf '%s\\n' '{\"result\": " + without_copy() + "}'");
  lease(0);
  begin();
  const auto plain = stage(), live = stage_now();
  ASSERT_TRUE(happens("find-views"));
  context.run_for(Duration(200));
  EXPECT_EQ(worker.calls("stage"), 0);
  touch("answer");
  ASSERT_TRUE(happens("stage"));
  EXPECT_TRUE(is_noted("stages", "\"view\":12"));
  ASSERT_TRUE(ends(live));
  EXPECT_EQ(get_string(dataset_of(live), "path"), "/live/imagenet");
  touch("go");
  ASSERT_TRUE(ends(plain));
  EXPECT_EQ(worker.calls("stage"), 1);
}

// It was killed when the copy had been published, before it had told anybody.
TEST_F(EarlierDaemon, ACopyThatItPublishedIsLeasedAndShown) {
  find_view(R"(, "copy": "/c/imagenet/3")");
  lease(0);
  start_empty();
  ASSERT_TRUE(happens("show-copy"));
  EXPECT_TRUE(is_noted("show-copy", "\"copy\":\"/c/imagenet/3\""));
  EXPECT_TRUE(is_leased(3));
  EXPECT_EQ(worker.calls("stage"), 0);
  ASSERT_TRUE(datasets->leases().release("l1"));
  ASSERT_TRUE(has("removed"));
}

// The same, a moment earlier: the catalog has the generation, and the view does not.
TEST_F(EarlierDaemon, ACopyThatItHasEnteredIsShown) {
  find_view("");
  lease(1);
  start_empty();
  touch("go");
  ASSERT_TRUE(happens("show-copy"));
  EXPECT_EQ(times("ended"), 0);
  EXPECT_TRUE(is_leased(1));
}

TEST_F(EarlierDaemon, ALeaseOnAnEarlierCopyKeepsNoViewOfIt) {
  find_view(R"(, "demand": {"after": 1})");
  lease(1);
  start_empty();
  ASSERT_TRUE(has("removed"));
  EXPECT_TRUE(is_leased(1));
}

// What is here can be read as long as its job runs.
TEST_F(EarlierDaemon, AViewThatHasFailedBeginsNoStaging) {
  find_view(R"(, "failed": "the source has changed since the view began")");
  lease(1);
  start_empty();
  ASSERT_TRUE(happens("serve-view"));
  context.run_for(Duration(200));
  EXPECT_EQ(times("ended"), 0);
  ASSERT_TRUE(datasets->leases().release("l1"));
  ASSERT_TRUE(has("removed"));
  EXPECT_EQ(worker.calls("stage"), 0);
}

// A program has a file of it open.
TEST_F(EarlierDaemon, AViewThatHasEndedIsServedAndBeginsNoStaging) {
  find_view(R"(, "demand": {"after": 0}, "ended": true)");
  lease(1);
  start_empty();
  ASSERT_TRUE(happens("serve-view"));
  ASSERT_TRUE(has("removed"));
  EXPECT_EQ(times("ended"), 1);
  EXPECT_EQ(worker.calls("stage"), 0);
}

TEST_F(EarlierDaemon, ItsViewsAreLookedForAgain) {
  lease(0);
  find_view("");
  worker.on("find-views",
            note_request("find-views.log") +
                "if [ $n -lt 3 ]; then echo '{\"error\": {\"kind\": \"timed_out\", \"what\": \"no "
                "answer\", \"hint\": \"\"}}'; else echo '{\"result\": {\"views\": [{\"view\": 12, "
                "\"dataset\": \"imagenet\", \"folder\": \"/live/imagenet\"}]}}'; fi");
  start_empty();
  ASSERT_TRUE(happens("serve-view"));
  EXPECT_TRUE(manager.forgotten.empty());
}

// Readers that an earlier daemon left wait in the kernel, and some can't be killed.
TEST_F(EarlierDaemon, ItsConnectionsEndIfTheCacheCannotBeOpened) {
  worker.on("find-views", note_request("find-views.log") + R"(echo '{"result": {"views": []}}')");
  worker.on("lease",
            "cat > /dev/null; echo '{\"error\": {\"kind\": \"unavailable\", \"what\": \"the drive is away\", "
            "\"hint\": \"\"}}'");
  timings.recover_again = Duration(100);
  begin();
  char byte = 0;
  ASSERT_TRUE(run_until(context, [&] { return ::read(there.get(), &byte, 1) == 0; }));
  EXPECT_EQ(manager.forgotten, std::vector<std::string>{"live-12"});
  EXPECT_TRUE(is_noted("find-views", "\"kept\":[]"));
}

}  // namespace
}  // namespace spark::datasets
