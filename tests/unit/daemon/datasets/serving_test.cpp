// Copies that are served as they are: to holders of leases, and while the source is away.
#include <sys/stat.h>

#include <filesystem>

#include "tests/unit/daemon/datasets/patience_fixture.hpp"

namespace spark::datasets {
namespace {

using testing::HasSubstr;

TEST_F(PatienceTest, TheHolderOfALeaseIsServedItsOwnGenerationWithoutALookAtTheSource) {
  lease_of_job(1);
  start();
  const auto job = ask_for_job();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(worker.calls("stage"), 0);
  EXPECT_EQ(get_string(result_of(job), "path"), "/c/1");
  EXPECT_EQ(get_string(result_of(job), "served_from"), "cache");
  EXPECT_EQ(get_string(result_of(job), "lease"), "job:slurm:7:imagenet");
  EXPECT_FALSE(result_of(job).contains("unchecked"));
  source_error = gone;
  const auto away = ask_for_job(Duration(0));
  ASSERT_TRUE(ends(away));
  EXPECT_EQ(get_string(result_of(away), "path"), "/c/1");
  EXPECT_THAT(get_string(result_of(away), "unchecked").value_or(""), HasSubstr("is lost"));
  EXPECT_EQ(worker.calls("stage"), 0);
}

TEST_F(PatienceTest, AHolderIsServedItsOwnGenerationAlsoIfANewerOneCouldStandIn) {
  settings.datasets["imagenet"].offline = true;
  lease_of_job(1);
  start();
  source_error = gone;
  const auto job = ask_for_job(Duration(0));
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(get_string(result_of(job), "path"), "/c/1");
}

TEST_F(PatienceTest, ADamagedCopyIsNotServedToItsHolder) {
  lease_of_job(2);
  std::string here = one_line(kHere);
  here.replace(here.find("ready"), 5, "failed");
  worker.on("catalog", "printf '%s\\n' '" + here + "'");
  start();
  const auto job = ask_for_job();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(worker.calls("stage"), 1) << "it is staged again";
}

TEST_F(PatienceTest, AnOfflineRequestIsServedTheNewestCopyOnlyWhileTheSourceIsAway) {
  start();
  ASSERT_TRUE(ends(ask(Duration(0), true)));
  EXPECT_EQ(worker.calls("stage"), 1) << "the source is there";
  source_error = gone;
  const auto job = ask(Duration(0), true);
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(worker.calls("stage"), 1);
  EXPECT_EQ(get_string(result_of(job), "path"), "/c/2");
  EXPECT_THAT(get_string(result_of(job), "unchecked").value_or(""), HasSubstr("its device is gone"));
  const auto other = ask(Duration(0));
  ASSERT_TRUE(ends(other));
  EXPECT_EQ(kind_of(other), "unavailable");
  EXPECT_THAT(json::serialize(other->final_event()), HasSubstr("--offline"));
}

TEST_F(PatienceTest, ADatasetCanAllowEveryRequestToBeOffline) {
  settings.datasets["imagenet"].offline = true;
  start();
  source_error = gone;
  const auto job = ask(Duration(0));
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "done");
  EXPECT_EQ(get_string(result_of(job), "path"), "/c/2");
}

TEST_F(PatienceTest, AShortOutageIsNoReasonToServeAnOldCopy) {
  settings.datasets["imagenet"].offline = true;
  start();
  source_error = gone;
  may_be_back_soon = true;
  const auto job = ask(Duration(0));
  ASSERT_TRUE(is_stalled());
  context.run_for(std::chrono::milliseconds(100));
  EXPECT_TRUE(job->is_running()) << "it waits until it is known which copy it gets";
  source_error.reset();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(worker.calls("stage"), 1);
  source_error = gone;
  const auto other = ask(Duration(0));
  ASSERT_TRUE(is_stalled());
  may_be_back_soon = false;
  ASSERT_TRUE(ends(other));
  EXPECT_EQ(get_string(result_of(other), "path"), "/c/2");
}

TEST_F(PatienceTest, ACopyUnderWayIsNotReplacedByAnOldOneInAShortOutage) {
  settings.datasets["imagenet"].offline = true;
  worker.on("stage",
            "if [ $n = 1 ]; then " + lines({kBegun, "sleep 0.2", kTrouble}) + "; else " + staged() + "; fi");
  start();
  const auto job = ask(Duration(0));
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("stage") == 1; }));
  source_error = gone;
  may_be_back_soon = true;
  ASSERT_TRUE(is_stalled());
  context.run_for(std::chrono::milliseconds(300));
  source_error.reset();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(get_string(result_of(job), "served_from"), "copied");
}

TEST_F(PatienceTest, ACompleteStagingIsServedAlsoIfItsVolumeIsLostJustThen) {
  settings.datasets["imagenet"].offline = true;
  worker.on("stage", lines({kBegun, "sleep 0.2", kBegun, staged()}));
  start();
  const auto job = ask(Duration(0));
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("stage") == 1; }));
  may_be_back_soon = true;
  source_error = gone;
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(get_string(result_of(job), "served_from"), "copied");
}

TEST_F(PatienceTest, APlainFolderThatIsRefusedForAnotherReasonIsNotAway) {
  worker.on("stage", R"(echo '{"error": {"kind": "refused", "what": "links lead out of it", "hint": ""}}')");
  start();
  const auto job = ask(Duration(0), true);
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "refused");
}

TEST_F(PatienceTest, ACopyOfWhatTheDatasetWasBeforeDoesNotStandInForIt) {
  std::string here = one_line(kHere);
  const std::string now = definition_of(settings.datasets["imagenet"]);
  config::Dataset before = settings.datasets["imagenet"];
  before.path = "/data/v1";
  const auto told = [&](const config::Dataset& dataset) {
    return R"("definition": )" + json::serialize(json::value(definition_of(dataset))) + ", ";
  };
  here.replace(here.find("\"path\": \"/c/2\""), 0, told(before));
  here.replace(here.find("\"path\": \"/c/1\""), 0, told(settings.datasets["imagenet"]));
  worker.on("catalog", "printf '%s\\n' '" + here + "'");
  start();
  source_error = gone;
  const auto job = ask(Duration(0), true);
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(get_string(result_of(job), "path"), "/c/1");
}

TEST_F(PatienceTest, AServedCopyIsHeldAndNotServedIfItIsGone) {
  start();
  source_error = gone;
  ASSERT_TRUE(ends(ask(Duration(0), true)));
  EXPECT_THAT(text_of("leases.log"), HasSubstr(R"("op":"serve")"));
  worker.on("lease", R"(echo '{"error": {"kind": "not_found", "what": "it is gone", "hint": ""}}')");
  const auto job = ask(Duration(0), true);
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "unavailable");
}

TEST_F(PatienceTest, ACopyThatIsGoneFromTheCacheIsStagedAgain) {
  lease_of_job(1);
  start();
  worker.on("lease", R"(if grep -q '"op":"serve"'; then
      echo '{"error": {"kind": "not_found", "what": "it is gone", "hint": ""}}'
    else echo '{"result": {}}'; fi)");
  const auto job = ask_for_job();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "done");
  EXPECT_EQ(worker.calls("stage"), 1);
}

TEST_F(PatienceTest, AProcessAndItsDescendantsAreServedTheCopyThatItHolds) {
  Lease lease;
  lease.process = staging::process_with(::getpid());
  lease_of(lease, 1);
  start();
  source_error = gone;
  const auto held = ask_as({{12345, 6}, lease.process}, "");
  ASSERT_TRUE(ends(held));
  EXPECT_EQ(get_string(result_of(held), "path"), "/c/1");
  StageRequest accepts;
  accepts.datasets = {"imagenet"};
  accepts.callers = {lease.process};
  accepts.accepts_source = true;
  const auto looks = *datasets->requests().stage(accepts);
  ASSERT_TRUE(ends(looks));
  EXPECT_EQ(kind_of(looks), "unavailable") << "it wants what the source is now";
  const auto other = ask_as({{12345, 6}}, "");
  ASSERT_TRUE(ends(other));
  EXPECT_EQ(kind_of(other), "unavailable");
}

TEST_F(PatienceTest, AControlGroupAndThoseBelowItAreServedTheCopyThatItHolds) {
  const std::filesystem::path group = worker.folder() / "job_7";
  std::filesystem::create_directory(group);
  std::ofstream(group / "cgroup.events") << "populated 1\n";
  struct stat info {};
  ASSERT_EQ(::stat(group.c_str(), &info), 0);
  Lease lease;
  lease.cgroup = {group, info.st_ino};
  lease_of(lease, 1);
  start();
  source_error = gone;
  const auto held = ask_as({}, (group / "step_0").native());
  ASSERT_TRUE(ends(held));
  EXPECT_EQ(get_string(result_of(held), "path"), "/c/1");
  const auto other = ask_as({}, group.native() + "1");
  ASSERT_TRUE(ends(other));
  EXPECT_EQ(kind_of(other), "unavailable");
  // A unit that was started again has the group's path.
  std::ofstream(group / "cgroup.events") << "populated 0\n";
  const auto next = ask_as({}, group.native());
  ASSERT_TRUE(ends(next));
  EXPECT_EQ(kind_of(next), "unavailable");
}

TEST_F(PatienceTest, OfflineIsNotOfferedWhereItDoesNotHelp) {
  worker.on("stage", kTrouble);  // the cache's drive is away
  start();
  const auto job = ask(Duration(0));
  ASSERT_TRUE(ends(job));
  EXPECT_THAT(json::serialize(job->final_event()), testing::Not(HasSubstr("--offline")));
}

TEST_F(PatienceTest, AnOfflineRequestWaitsUntilTheCacheIsOpen) {
  worker.on("recover", R"(sleep 0.3; echo '{"progress": {"looked_over": true}}'; echo '{"result": {}}')");
  begin();
  source_error = gone;
  const auto job = ask(Duration(0), true);
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(get_string(result_of(job), "path"), "/c/2");
}

TEST_F(PatienceTest, AVolumeKeepsTheCopyThatIsMountedWhateverTheConfigurationIs) {
  std::string here = one_line(kHere);
  worker.on("catalog", "printf '%s\\n' '" + here.replace(here.rfind("ready"), 5, "failed") + "'");
  start();
  settings.datasets.erase("imagenet");
  StageRequest request;
  request.datasets = {"imagenet"};
  request.job.system = staging::kCsi;
  request.job.id = "csi-1f";
  request.generation = 1;
  request.wait.reset();
  const auto job = *datasets->requests().stage(request);
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(get_string(result_of(job), "path"), "/c/1");
  EXPECT_EQ(get_string(result_of(job), "lease"), "job:csi:csi-1f:imagenet");
  request.generation = 7;
  EXPECT_EQ(datasets->requests().stage(request).error().kind, Errc::NotFound);
}

TEST_F(PatienceTest, APlainFolderThatIsGoneIsAwayTooForAnOfflineRequest) {
  worker.on("stage", R"(echo '{"error": {"kind": "refused", "what": "/data/imagenet has become empty",)"
                     R"( "hint": "", "is_away": true}}')");
  start();
  const auto job = ask(Duration(0), true);
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "done");
  EXPECT_EQ(get_string(result_of(job), "unchecked"), "/data/imagenet has become empty");
  const auto strict = ask(Duration(0));
  ASSERT_TRUE(ends(strict));
  EXPECT_EQ(kind_of(strict), "refused");
}

}  // namespace
}  // namespace spark::datasets
