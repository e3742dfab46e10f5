// Requests that take a dataset while it is staged, with scripts for the staging and for the view's process.
#include <fcntl.h>
#include <unistd.h>

#include "base/text.hpp"
#include "tests/unit/daemon/datasets/fixture.hpp"

namespace spark::datasets {
namespace {

class LiveTest : public DatasetsTest {
 protected:
  live::KeptDescriptors kept;
  live::ViewTimings views;

  void adjust(Context& parts) override {
    parts.kept = kept;
    parts.views = views;
  }

  LiveTest() {
    worker.on("stage", note_request("stages.log") + "echo '{\"progress\": {\"readable\": true}}'; " +
                           std::string(kBegun) + "; while [ ! -e go ]; do sleep 0.02; done; " + staged());
    serve_view(true);
    for (const char* verb : {"fail-view", "show-copy", "end-view", "forget-view"})
      worker.on(verb,
                note_request(std::string(verb) + ".log") + "touch " + verb + "; echo '{\"result\": {}}'");
    worker.on("find-views", R"(echo '{"result": {"views": []}}')");
  }

  // Its process answers until the view ends, or the file `killed` is there.
  void serve_view(bool can_resend) {
    worker.on("serve-view", note_request("serve-view.log") +
                                "echo '{\"progress\": {\"folder\": \"/live/imagenet\", \"can_resend\": " +
                                (can_resend ? "true" : "false") +
                                "}}'; while [ ! -e end-view ]; do if [ -e killed ]; then rm killed; kill -9 "
                                "$$; fi; sleep 0.02; done; "
                                "echo '{\"result\": {}}'");
  }

  std::shared_ptr<Job> stage_now() {
    StageRequest request;
    request.datasets = {"imagenet"};
    request.now = true;
    request.lease = std::chrono::hours(1);
    request.asker.holder = "a test";
    auto job = datasets->requests().stage(std::move(request));
    EXPECT_TRUE(job) << job.error().message();
    return *job;
  }
  static json::object dataset_of(const std::shared_ptr<Job>& job) {
    const auto event = job->final_event();
    const json::object* result = get_object(event, "result");
    return result == nullptr ? json::object{} : get_array(*result, "datasets")->front().as_object();
  }
  void touch(const char* name) const { std::ofstream(worker.folder() / name) << "x"; }
  bool happens(const char* verb, int calls = 1) {
    return run_until(context, [&] { return worker.calls(verb) >= calls; });
  }
  // A call is counted before its script notes the request.
  bool is_noted(const char* verb, const std::string& text) {
    return run_until(context,
                     [&] { return text_of(std::string(verb) + ".log").find(text) != std::string::npos; });
  }
  std::string without_copy() const {
    return R"({"datasets": [], "usage": {"path": "/c", "capacity_bytes": 10, "used_bytes": 5, "free_bytes": 5}})";
  }
  void start_empty() {
    worker.on("catalog", "printf '%s\\n' '{\"result\": " + without_copy() + "}'");
    start();
  }
  std::uint64_t leased_generation() const {
    const auto leases = datasets->leases().of("imagenet");
    return leases.empty() ? 99 : leases.front()->generation;
  }
};

TEST_F(LiveTest, TheRequestEndsWithTheViewAndTheStagingGoesOn) {
  start_empty();
  const auto job = stage_now();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(get_string(dataset_of(job), "state"), "live");
  EXPECT_EQ(get_string(dataset_of(job), "path"), "/live/imagenet");
  EXPECT_EQ(get_int(dataset_of(job), "bytes_here"), 5);
  EXPECT_EQ(state_of("imagenet"), "live");
  EXPECT_EQ(leased_generation(), 0U);
  EXPECT_NE(text_of("stages.log").find("\"view\":true"), std::string::npos);
  EXPECT_EQ(worker.calls("show-copy"), 0);
  touch("go");
  ASSERT_TRUE(happens("show-copy"));
  EXPECT_TRUE(is_noted("show-copy", "\"copy\":\"/c/1\""));
  EXPECT_EQ(leased_generation(), 1U);
  EXPECT_EQ(worker.calls("end-view"), 0);
  ASSERT_TRUE(datasets->leases().release(*get_string(dataset_of(job), "lease")));
  ASSERT_TRUE(happens("forget-view"));
  EXPECT_EQ(worker.calls("fail-view"), 0);
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
  ASSERT_TRUE(happens("forget-view"));
  EXPECT_EQ(worker.calls("serve-view"), 1);
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "copying"; }));
  const auto again = stage_now();
  ASSERT_TRUE(ends(again));
  EXPECT_EQ(kind_of(again), "failed");
}

TEST_F(LiveTest, AStagingThatFailsFailsTheView) {
  worker.on("stage",
            "cat > /dev/null; echo '{\"progress\": {\"readable\": true}}'; " + std::string(kBegun) +
                "; while [ ! -e go ]; do sleep 0.02; done; "
                "echo '{\"error\": {\"kind\": \"no_space\", \"what\": \"it is full\", \"hint\": \"\"}}'");
  start_empty();
  const auto job = stage_now();
  ASSERT_TRUE(ends(job));
  touch("go");
  ASSERT_TRUE(happens("fail-view"));
  EXPECT_TRUE(is_noted("fail-view", "it is full"));
  EXPECT_EQ(worker.calls("end-view"), 0) << "what is here can be read as long as the job has its lease";
  ASSERT_TRUE(datasets->leases().release(*get_string(dataset_of(job), "lease")));
  ASSERT_TRUE(happens("forget-view"));
}

TEST_F(LiveTest, TheStagingEndsWithItsLastLease) {
  start_empty();
  const auto job = stage_now();
  ASSERT_TRUE(ends(job));
  ASSERT_TRUE(datasets->leases().release(*get_string(dataset_of(job), "lease")));
  ASSERT_TRUE(happens("forget-view"));
  ASSERT_TRUE(run_until(context, [&] { return state_of("imagenet") == "absent"; }));
}

TEST_F(LiveTest, AStagingUnderWayBeginsAgainForItsView) {
  worker.on("stage",
            "read -r request; printf '%s\\n' \"$request\" >> stages.log; "
            "case $request in *\\\"view\\\":true*) echo '{\"progress\": {\"readable\": true}}';; esac; " +
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
  ASSERT_TRUE(happens("forget-view"));
  EXPECT_GT(worker.calls("serve-view"), 2);
}

TEST_F(LiveTest, AViewThatCannotBeFailedLosesItsConnection) {
  std::vector<std::string> forgotten;
  kept.keep = [](const std::string&, int) {};
  kept.forget = [&](const std::string& name) { forgotten.push_back(name); };
  worker.on("stage",
            "cat > /dev/null; echo '{\"progress\": {\"readable\": true}}'; " + std::string(kBegun) +
                "; while [ ! -e go ]; do sleep 0.02; done; "
                "echo '{\"error\": {\"kind\": \"no_space\", \"what\": \"it is full\", \"hint\": \"\"}}'");
  worker.on(
      "fail-view",
      "cat > /dev/null; echo '{\"error\": {\"kind\": \"not_found\", \"what\": \"no map\", \"hint\": \"\"}}'");
  start_empty();
  ASSERT_TRUE(ends(stage_now()));
  touch("go");
  ASSERT_TRUE(happens("forget-view")) << "its process was ended";
  EXPECT_EQ(forgotten.size(), 1U);
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
  ASSERT_TRUE(happens("show-copy"));
  ASSERT_EQ(datasets->leases().of("imagenet").size(), 1U);
  EXPECT_NE(datasets->leases().of("imagenet").front()->id, last);
}

TEST_F(LiveTest, ARequestThatComesWhileTheViewEndsWaitsForTheCopy) {
  worker.on("end-view",
            note_request("end-view.log") +
                "while [ ! -e ends ]; do sleep 0.02; done; touch end-view; echo '{\"result\": {}}'");
  start_empty();
  const auto job = stage_now();
  ASSERT_TRUE(ends(job));
  ASSERT_TRUE(datasets->leases().release(*get_string(dataset_of(job), "lease")));
  ASSERT_TRUE(happens("end-view"));
  const auto next = stage_now();
  touch("ends");
  ASSERT_TRUE(happens("forget-view"));
  touch("go");
  ASSERT_TRUE(ends(next));
  EXPECT_EQ(kind_of(next), "done");
  EXPECT_EQ(worker.calls("fail-view"), 0);
}

// An earlier view took its map along.
TEST_F(LiveTest, WithoutAMapTheRequestWaitsForTheCopy) {
  worker.on(
      "serve-view",
      "cat > /dev/null; echo '{\"error\": {\"kind\": \"not_found\", \"what\": \"no map\", \"hint\": \"\"}}'");
  start_empty();
  const auto job = stage_now();
  ASSERT_TRUE(happens("forget-view"));
  EXPECT_TRUE(job->is_running());
  touch("go");
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(get_string(dataset_of(job), "state"), "ready");
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
  const auto next = stage_now();
  ASSERT_TRUE(ends(next));
  EXPECT_EQ(kind_of(next), "failed");
}

// Readers that an earlier daemon left wait in the kernel, and some can't be killed.
TEST_F(LiveTest, KeptConnectionsEndIfTheCacheCannotBeOpened) {
  int ends_of_pipe[2];
  ASSERT_EQ(::pipe2(ends_of_pipe, O_CLOEXEC | O_NONBLOCK), 0);
  const UniqueFd there(ends_of_pipe[0]);
  kept.earlier = std::make_shared<std::map<std::string, UniqueFd>>();
  (*kept.earlier)["live-imagenet.12"] = UniqueFd(ends_of_pipe[1]);
  std::vector<std::string> forgotten;
  kept.forget = [&](const std::string& name) { forgotten.push_back(name); };
  worker.on("find-views", note_request("find-views.log") + R"(echo '{"result": {"views": []}}')");
  worker.on("lease",
            "cat > /dev/null; echo '{\"error\": {\"kind\": \"unavailable\", \"what\": \"the drive is away\", "
            "\"hint\": \"\"}}'");
  timings.recover_again = Duration(100);
  begin();
  char byte = 0;
  ASSERT_TRUE(run_until(context, [&] { return ::read(there.get(), &byte, 1) == 0; }));
  EXPECT_EQ(forgotten, std::vector<std::string>{"live-imagenet.12"});
  EXPECT_TRUE(is_noted("find-views", "\"kept\":[]"));
}

}  // namespace
}  // namespace spark::datasets
