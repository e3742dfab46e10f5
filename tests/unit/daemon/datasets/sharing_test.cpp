// Resources shared by requests: a copy with its limit and its configuration, a source and the drive.
#include <array>

#include "base/text.hpp"
#include "tests/unit/daemon/datasets/fixture.hpp"

namespace spark::datasets {
namespace {

class SharingTest : public DatasetsTest {
 protected:
  SharingTest() {
    // Logs its request, then copies until the test ends it.
    worker.on("stage", "request=$(cat); printf '%s\\n' \"$request\" >> stages.log; " + std::string(kBegun) +
                           "; while [ ! -e go ]; do sleep 0.02; done; " + staged());
  }
  std::shared_ptr<Job> stage_at(const std::string& dataset, Bytes max_rate) {
    StageRequest request;
    request.datasets = {dataset};
    request.demand.max_rate = max_rate;
    auto job = datasets->requests().stage(std::move(request));
    EXPECT_TRUE(job) << job.error().message();
    return *job;
  }
  std::shared_ptr<Job> stage_accepting(std::optional<Duration> wait) {
    StageRequest request;
    request.datasets = {"models"};
    request.accepts_source = true;
    request.wait = wait;
    return *datasets->requests().stage(std::move(request));
  }
  std::vector<json::object> requests() {
    std::vector<json::object> all;
    for (const std::string& line : split(text_of("stages.log"), '\n')) {
      if (auto request = parse_json_object(line)) all.push_back(std::move(*request));
    }
    return all;
  }
  // A request that only checks the cache does not count as a copy.
  bool copies_begin(std::size_t number) {
    return run_until(context, [&] {
      return std::ranges::count_if(requests(), [](const json::object& request) {
               return get_bool(request, "only_cached") == false;
             }) == static_cast<std::ptrdiff_t>(number);
    });
  }
  void let_go() { std::ofstream(worker.folder() / "go") << "x"; }
  void add_dataset(const std::string& name, const std::string& volume) {
    config::Dataset dataset;
    dataset.name = name;
    dataset.volume = volume;
    dataset.path = name;
    settings.datasets[name] = dataset;
  }
};

// It is refused to one request, as it should be, and staged for the other.
TEST_F(SharingTest, ARequestThatAcceptsTheSourceDoesNotAcceptItForOthers) {
  worker.on("stage", note_request("stages.log") + std::string(kBegun) +
                         R"(; case $request in *accept_source*) ;; *) while [ ! -e go ]; do sleep 0.02; done;
                         echo '{"error": {"kind": "refused", "what": "it is empty", "hint": ""}}'; exit;; esac; )" +
                         staged());
  start();
  const auto plain = stage_at("models", 0);
  ASSERT_TRUE(copies_begin(1));
  const auto accepting = stage_accepting({});
  let_go();
  EXPECT_TRUE(ends(plain));
  EXPECT_TRUE(ends(accepting));
  EXPECT_EQ(kind_of(plain), "refused");
  EXPECT_EQ(kind_of(accepting), "done");
}

// The cache is listed after it.
TEST_F(SharingTest, AStagingThatIsOverIsNotShared) {
  worker.on("stage", note_request("stages.log") +
                         R"(if [ $n = 1 ]; then
                         echo '{"error": {"kind": "refused", "what": "it is empty", "hint": ""}}'; else )" +
                         staged() + "; fi");
  start();
  worker.on("catalog",
            "while [ ! -e go ]; do sleep 0.02; done; printf '%s\\n' '{\"result\": " + one_line(kRows) + "}'");
  const int listed = worker.calls("catalog");
  const auto early = stage_at("models", 0);
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("catalog") > listed; }));
  const auto late = stage_at("models", 0);
  let_go();
  EXPECT_TRUE(ends(early));
  EXPECT_TRUE(ends(late));
  EXPECT_EQ(kind_of(early), "refused");
  EXPECT_EQ(kind_of(late), "done");
}

// It waits for a staging of its own by then, which has to follow the request's limit too.
TEST_F(SharingTest, ARequestThatDoesNotWaitEndsIfItsSourceGoesAwayBeforeItsOwnStaging) {
  worker.on("stage", note_request("stages.log") + std::string(kBegun) +
                         R"(; while [ ! -e go ]; do sleep 0.02; done;
                         echo '{"error": {"kind": "refused", "what": "it is empty", "hint": ""}}')");
  start();
  const auto plain = stage_at("models", 0);
  ASSERT_TRUE(copies_begin(1));
  const auto accepting = stage_accepting(Duration(0));
  away = "models";
  source_error = Error{Errc::Unavailable, "volume datasets is lost: its device is gone", ""};
  let_go();
  EXPECT_TRUE(ends(plain));
  EXPECT_EQ(kind_of(plain), "refused");
  EXPECT_TRUE(ends(accepting)) << "it does not end";
  EXPECT_EQ(kind_of(accepting), "unavailable");
}

// What changed in the source since then may not be in the copy.
TEST_F(SharingTest, ARequestThatJoinsAfterTheWalkHasBegunGetsAnotherLook) {
  start();
  worker.on("lease",
            "while [ ! -e go-on ]; do sleep 0.02; done; echo '{\"result\": {}}'");  // ends holds late
  const auto first = stage_at("models", 0);
  ASSERT_TRUE(copies_begin(1));
  const auto second = stage_at("models", 0), third = stage_at("models", 0);
  let_go();
  ASSERT_TRUE(ends(second));
  std::ofstream(worker.folder() / "go-on") << "x";
  for (const auto& job : {first, second, third}) {
    EXPECT_TRUE(ends(job));
    EXPECT_EQ(kind_of(job), "done");
  }
  EXPECT_EQ(worker.calls("stage"), 2) << "they share it";
}

TEST_F(SharingTest, ARequestWithoutALimitLiftsTheLimitOfTheCopyItJoins) {
  start();
  const auto slow = stage_at("models", 50'000'000);
  ASSERT_TRUE(copies_begin(1));
  EXPECT_EQ(get_int(requests()[0], "max_rate"), 50'000'000);
  const auto fast = stage_at("models", 0);
  ASSERT_TRUE(copies_begin(2)) << "the worker goes on from its partial copy, without the limit";
  EXPECT_EQ(get_int(requests()[1], "max_rate"), 0);
  let_go();
  EXPECT_TRUE(ends(slow));
  EXPECT_TRUE(ends(fast));
  EXPECT_EQ(kind_of(slow), "done");
}

TEST_F(SharingTest, PeersAreToldOfACopyThatIsLimitedOrForALaterJob) {
  settings.fleet.listen = {nvmetcp::Portal{"10.0.0.1", 7789}};
  device = "/dev/nvme0n1";
  start();
  const auto is_slow = [&](std::size_t number) {
    const json::object request = requests()[number];
    const json::object* fleet = get_object(request, "fleet");
    return fleet == nullptr ? std::nullopt : get_bool(*fleet, "slow");
  };
  StageRequest later;
  later.datasets = {"models"};
  later.demand.is_prefetch = true;
  const auto prefetch = *datasets->requests().stage(std::move(later));
  ASSERT_TRUE(copies_begin(1));
  EXPECT_EQ(is_slow(0), true);
  const auto limited = stage_at("models", 50'000'000);
  ASSERT_TRUE(copies_begin(2));
  EXPECT_EQ(is_slow(1), true);
  const auto normal = stage_at("models", 0);
  ASSERT_TRUE(copies_begin(3));
  EXPECT_EQ(is_slow(2), false);
  let_go();
  for (const auto& job : {prefetch, limited, normal}) EXPECT_TRUE(ends(job));
}

TEST_F(SharingTest, ARestartedCopyStillWaitsForItsVolume) {
  start();
  const auto slow = stage_at("models", 50);
  ASSERT_TRUE(copies_begin(1));
  away = "models";
  source_error = Error{Errc::Unavailable, "volume one is stalled", ""};
  const auto fast = stage_at("models", 0);
  ASSERT_TRUE(run_until(context, [&] { return state_of("models") == "stalled"; }));
  source_error.reset();
  ASSERT_TRUE(copies_begin(2));
  let_go();
  EXPECT_TRUE(ends(slow));
  EXPECT_TRUE(ends(fast));
  EXPECT_EQ(kind_of(slow), "done");
}

TEST_F(SharingTest, TheLoosestLimitAppliesAndATighterOneDoesNotRestartTheCopy) {
  start();
  const auto first = stage_at("models", 50);
  ASSERT_TRUE(copies_begin(1));
  const auto second = stage_at("models", 20), third = stage_at("models", 70);
  ASSERT_TRUE(copies_begin(2)) << "for the looser limit, not for the tighter one";
  EXPECT_EQ(get_int(requests()[1], "max_rate"), 70);
  EXPECT_TRUE(third->cancel());
  ASSERT_TRUE(copies_begin(3)) << "the limit that is left holds again";
  EXPECT_EQ(get_int(requests()[2], "max_rate"), 50);
  let_go();
  EXPECT_TRUE(ends(first));
  EXPECT_TRUE(ends(second));
}

TEST_F(SharingTest, ARetryAfterAReloadUsesTheNewConfiguration) {
  worker.on("stage", "request=$(cat); printf '%s\\n' \"$request\" >> stages.log; " + std::string(kBegun) +
                         "; " + kTrouble);
  start();
  const auto job = stage_at("models", 0);
  ASSERT_TRUE(copies_begin(1));
  settings.datasets["models"].exclude = {"*.tmp"};
  datasets->config_changed();
  worker.on("stage", "request=$(cat); printf '%s\\n' \"$request\" >> stages.log; " + staged());
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(json::serialize(requests().back().at("exclude")), R"(["*.tmp"])");
}

TEST_F(SharingTest, OnlyAReloadThatChangesADatasetsContentRestartsItsCopy) {
  start();
  const auto job = stage_at("models", 0);
  ASSERT_TRUE(copies_begin(1));
  settings.datasets["imagenet"].exclude = {"*.tmp"};
  settings.datasets["models"].env = "HF_HOME";
  datasets->config_changed();
  settings.datasets["models"].exclude = {"*.bak"};
  datasets->config_changed();
  ASSERT_TRUE(copies_begin(2)) << "neither another dataset's nor what only `run` reads";
  EXPECT_EQ(json::serialize(requests()[1].at("exclude")), R"(["*.bak"])");
  let_go();
  EXPECT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "done");
}

TEST_F(SharingTest, RemovingADatasetFromTheConfigurationEndsItsStaging) {
  start();
  const auto job = stage_at("models", 0);
  ASSERT_TRUE(copies_begin(1));
  settings.datasets.erase("models");
  datasets->config_changed();
  ASSERT_TRUE(ends(job));
  EXPECT_EQ(kind_of(job), "not_found");
}

TEST_F(SharingTest, DatasetsOfTwoVolumesAreCopiedConcurrentlyAndOfOneVolumeInTurn) {
  add_dataset("a", "one");
  add_dataset("b", "two");
  add_dataset("c", "one");
  start();
  const std::array jobs = {stage_at("a", 0), stage_at("b", 0), stage_at("c", 0)};
  ASSERT_TRUE(copies_begin(2));
  const auto copied = requests();  // the order of the two workers' lines is not defined
  EXPECT_THAT((std::array{get_string(copied[0], "dataset"), get_string(copied[1], "dataset")}),
              testing::UnorderedElementsAre("a", "b"));
  EXPECT_EQ(state_of("c"), "queued");
  let_go();
  for (const auto& job : jobs) EXPECT_TRUE(ends(job));
  EXPECT_EQ(get_string(requests()[2], "dataset"), "c");
}

TEST_F(SharingTest, ARateLimitedCopyDoesNotBlockAnUnlimitedOneOfItsVolume) {
  add_dataset("a", "one");
  add_dataset("b", "one");
  add_dataset("c", "one");
  start();
  const std::array jobs = {stage_at("a", 50), stage_at("b", 0), stage_at("c", 60)};
  ASSERT_TRUE(copies_begin(2));
  EXPECT_TRUE(run_until(context, [&] { return state_of("b") == "copying"; }));
  EXPECT_EQ(state_of("c"), "queued") << "limits of one source are not added up";
  let_go();
  for (const auto& job : jobs) EXPECT_TRUE(ends(job));
}

TEST_F(SharingTest, AtMostFourCopiesRunAtATime) {
  std::vector<std::shared_ptr<Job>> jobs;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) add_dataset(name, name);
  start();
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) jobs.push_back(stage_at(name, 0));
  ASSERT_TRUE(copies_begin(4));
  EXPECT_EQ(state_of("e"), "queued");
  EXPECT_EQ(state_of("f"), "queued");
  let_go();
  for (const auto& job : jobs) EXPECT_TRUE(ends(job));
  EXPECT_TRUE(copies_begin(6));
}

}  // namespace
}  // namespace spark::datasets
