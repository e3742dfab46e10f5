// Guarantees of a request: its datasets are protected until it ends, and exist when it reports success.
#include <unistd.h>

#include <boost/asio/post.hpp>

#include "tests/unit/daemon/datasets/fixture.hpp"

namespace spark::datasets {
namespace {

using testing::HasSubstr;
using testing::Not;

class RequestTest : public DatasetsTest {
 protected:
  static constexpr char kTakeIds[] = R"(request=$(cat); echo "$request" >> leases.log; )"
                                     R"(ids=$(echo "$request" | sed -n 's/.*"ids":\[\([^]]*\)\].*/\1/p'); )";

  // As in the API: within the loop, a worker may start before stage() returns.
  std::shared_ptr<Job> stage_in_loop(const std::vector<std::string>& datasets) {
    std::shared_ptr<Job> job;
    boost::asio::post(context, [&] { job = stage_all(datasets); });
    EXPECT_TRUE(run_until(context, [&] { return job && !job->is_running(); }));
    return job;
  }
  std::vector<std::string> lines_of(const std::string& file) {
    std::ifstream in(worker.folder() / file);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) {
      if (!line.empty()) lines.push_back(line);
    }
    return lines;
  }
};

TEST_F(RequestTest, DatasetsOfOneRequestDoNotEvictEachOther) {
  start();
  EXPECT_EQ(kind_of(stage_in_loop({"models", "imagenet"})), "done");
  const auto requests = lines_of("stages.log");
  ASSERT_FALSE(requests.empty());
  EXPECT_THAT(requests[0], HasSubstr(R"({"dataset":"imagenet","generation":0})")) << "while models is staged";
  EXPECT_THAT(requests[0], HasSubstr(R"({"dataset":"models","generation":0})"));
}

TEST_F(RequestTest, StagedDatasetsAreHeldInTheCatalogUntilTheRequestEnds) {
  worker.on("lease", std::string(kTakeIds) + R"(echo '{"result": {"leases": [], "missing": []}}')");
  start();
  EXPECT_EQ(kind_of(stage_in_loop({"models", "imagenet"})), "done");
  const auto requests = lines_of("stages.log");
  ASSERT_EQ(requests.size(), 2U);
  ASSERT_TRUE(run_until(context,
                        [&] { return text_of("leases.log").find(R"("op":"remove")") != std::string::npos; }));
  const auto released = lines_of("leases.log").back();
  for (const std::string& request : requests) {
    const auto parsed = parse_json_object(request);
    ASSERT_TRUE(parsed);
    const json::object* hold = get_object(*parsed, "hold");
    ASSERT_NE(hold, nullptr);
    EXPECT_THAT(released, HasSubstr(*get_string(*hold, "id")));
  }
}

TEST_F(RequestTest, ARestartedDaemonDoesNotTreatAHoldAsALease) {
  const staging::ProcessId me = staging::process_with(::getpid());
  worker.on(
      "lease",
      R"(echo '{"result": {"leases": [{"id": "request-1", "dataset": "imagenet", "generation": 1, "pid": )" +
          std::to_string(me.pid) + R"(, "pid_start_time": )" + std::to_string(me.start_time) + R"(}]}}')");
  start();
  EXPECT_TRUE(datasets->leases().of("imagenet").empty());
  EXPECT_TRUE(datasets->upkeep().evict("imagenet"));
}

TEST_F(RequestTest, ADatasetIsInUseFromItsRequestToTheEndOfItsLease) {
  begin();
  EXPECT_FALSE(datasets->in_use()) << "the leases of an earlier daemon are not known";
  ASSERT_TRUE(run_until(context, [&] { return datasets->in_use().has_value(); }));
  EXPECT_THAT(*datasets->in_use(), testing::IsEmpty());
  worker.on("stage", note_request("stages.log") + "exec sleep 600");
  const auto job = stage();
  EXPECT_THAT(*datasets->in_use(), testing::ElementsAre("imagenet"));
  ASSERT_TRUE(job->cancel());
  EXPECT_TRUE(run_until(context, [&] { return datasets->in_use()->empty(); }));
}

TEST_F(RequestTest, ALeasedDatasetIsInUse) {
  const staging::ProcessId me = staging::process_with(::getpid());
  worker.on("lease",
            R"(echo '{"result": {"leases": [{"id": "1f", "dataset": "imagenet", "generation": 1, "pid": )" +
                std::to_string(me.pid) + R"(, "pid_start_time": )" + std::to_string(me.start_time) +
                R"(}]}}')");
  start();
  EXPECT_THAT(*datasets->in_use(), testing::ElementsAre("imagenet"));
}

TEST_F(RequestTest, ACancelledStagingLeavesNoHold) {
  worker.on("lease", std::string(kTakeIds) + R"(echo '{"result": {"leases": [], "missing": []}}')");
  worker.on("stage", note_request("stages.log") + "exec sleep 600");
  start();
  const auto job = stage();
  ASSERT_TRUE(run_until(context, [&] { return !lines_of("stages.log").empty(); }));
  ASSERT_TRUE(job->cancel());
  EXPECT_TRUE(run_until(context,
                        [&] { return text_of("leases.log").find(R"("op":"remove")") != std::string::npos; }));
}

TEST_F(RequestTest, DatasetsAreNotListedBeforeTheCacheIsChecked) {
  worker.on("recover",
            "until [ -e look ]; do sleep 0.02; done; echo '{\"progress\": {\"looked_over\": true}}'; "
            "until [ -e go ]; do sleep 0.02; done; echo '{\"result\": {}}'");
  begin();
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("recover") == 1; }));
  EXPECT_EQ(kind_of(stage_in_loop({"imagenet"})), "done") << "staging does not wait for it";
  ASSERT_FALSE(datasets->list());
  EXPECT_EQ(datasets->list().error().kind, Errc::Unavailable);
  EXPECT_EQ(datasets->upkeep().evict("imagenet").error().kind, Errc::Unavailable);
  std::ofstream(worker.folder() / "look") << "now";
  EXPECT_TRUE(run_until(context, [&] { return datasets->list().has_value(); }));
  std::ofstream(worker.folder() / "go") << "now";
}

TEST_F(RequestTest, RecoveryRunsOnceAndBlocksNoRequest) {
  worker.on("recover",
            "echo '{\"progress\": {\"looked_over\": true}}'; until [ -e go ]; do sleep 0.02; done; echo "
            "'{\"result\": {}}'");
  begin();
  ASSERT_TRUE(run_until(context, [&] { return datasets->list().has_value(); }));
  EXPECT_TRUE(run_until(context, [&] { return worker.calls("recover") == 1; }));
  EXPECT_EQ(kind_of(stage_in_loop({"imagenet"})), "done");
  const int looked = worker.calls("catalog");
  std::ofstream(worker.folder() / "go") << "now";
  EXPECT_TRUE(run_until(context, [&] { return worker.calls("catalog") > looked; }));
  EXPECT_EQ(kind_of(stage_in_loop({"imagenet"})), "done");
  EXPECT_EQ(worker.calls("recover"), 1);
}

TEST_F(RequestTest, AFailedRecoveryIsRetried) {
  worker.on("recover",
            R"(if [ $n = 1 ]; then echo '{"error": {"kind": "failed", "what": "disk I/O", "hint": ""}}';
                          else echo '{"result": {}}'; fi)");
  timings.recover_again = Duration(10);
  begin();
  EXPECT_TRUE(run_until(context, [&] { return worker.calls("recover") == 2; }));
}

TEST_F(RequestTest, CatalogRequestsListTheTasksInProgressAndTheNewestOne) {
  worker.on("catalog",
            note_request("catalogs.log") + "printf '%s\\n' '{\"result\": " + one_line(kRows) + "}'");
  worker.on("stage", note_request("stages.log") +
                         std::string("until [ -e go ]; do sleep 0.02; done; "
                                     "echo '") +
                         kStaged + "'");
  start();
  const auto slow = stage_all({"models"});
  ASSERT_TRUE(run_until(context, [&] { return !lines_of("stages.log").empty(); }));
  EXPECT_THAT(lines_of("stages.log")[0], HasSubstr(R"("task":1)"));
  ASSERT_TRUE(ends(*datasets->upkeep().evict("imagenet")));
  EXPECT_THAT(lines_of("catalogs.log").back(), HasSubstr(R"("in_progress":[1])"));
  EXPECT_THAT(lines_of("catalogs.log").back(), HasSubstr(R"("newest":1)"));
  std::ofstream(worker.folder() / "go") << "now";
  ASSERT_TRUE(ends(slow));
  EXPECT_THAT(lines_of("catalogs.log").back(), HasSubstr(R"("in_progress":[])"));
}

TEST_F(RequestTest, AFailedStagingThatLeftNothingCanBeEvicted) {
  worker.on("catalog", R"(echo '{"result": {"datasets": [], "usage": {}}}')");
  worker.on("stage", R"(echo '{"error": {"kind": "no_space", "what": "too large", "hint": ""}}')");
  worker.on("evict",
            R"(echo '{"error": {"kind": "not_found", "what": "it is not in the cache", "hint": ""}}')");
  start();
  ASSERT_TRUE(ends(stage()));
  EXPECT_EQ(state_of("imagenet"), "failed");
  const auto job = datasets->upkeep().evict("imagenet");
  ASSERT_TRUE(job);
  ASSERT_TRUE(ends(*job));
  EXPECT_EQ(kind_of(*job), "done");
  EXPECT_EQ(state_of("imagenet"), "absent");
}

TEST_F(RequestTest, RemainsOfAnInterruptedStagingCanBeEvicted) {
  start();
  const auto job =
      datasets->upkeep().evict("models");  // has no row, for example after a restart of the daemon
  ASSERT_TRUE(job) << job.error().message();
  ASSERT_TRUE(ends(*job));
  EXPECT_EQ(kind_of(*job), "done");
  EXPECT_EQ(worker.calls("evict"), 1);
}

}  // namespace
}  // namespace spark::datasets
