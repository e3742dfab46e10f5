// The cost of large requests on the daemon's thread.
#include <ctime>

#include "tests/unit/daemon/datasets/fixture.hpp"

namespace spark::datasets {
namespace {

// CPU time of this thread: other work on the machine does not count.
double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

class RequestsCost : public DatasetsTest {
 protected:
  // Requests this many more datasets without waiting.
  void ask_for(std::size_t datasets) {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < datasets; ++i) {
      names.push_back("dataset" + std::to_string(settings.datasets.size()));
      config::Dataset dataset;
      dataset.name = names.back();
      dataset.path = "/data/" + names.back();
      settings.datasets[names.back()] = dataset;
    }
    jobs_asked.push_back(stage_all(std::move(names)));
  }
  // Cancels waiting jobs, which would otherwise keep themselves alive.
  void cancel_all() {
    for (const auto& job : jobs_asked) EXPECT_TRUE(job->cancel());
    for (const auto& job : jobs_asked) EXPECT_TRUE(ends(job));
  }
  double cost_of_stages() {
    double least = 1e9;
    for (int i = 0; i < 3; ++i) {
      const double begin = processor_seconds();
      EXPECT_GT(datasets->stages().size(), 0u);
      least = std::min(least, processor_seconds() - begin);
    }
    return least;
  }
  std::vector<std::shared_ptr<Job>> jobs_asked;
};

// `status` shows each dataset with the jobs that requested it. An earlier version searched every job's names
// for every dataset.
TEST_F(RequestsCost, TheCostOfAStatusIsNotQuadraticInTheDatasets) {
  is_settling = true;
  start();
  ask_for(500);
  const double few = cost_of_stages();
  for (int i = 0; i < 7; ++i) ask_for(500);
  const double many = cost_of_stages();
  EXPECT_LT(many, 0.001 + 20 * few) << "eight times as many; " << few << " s for an eighth";
  const json::array stages = datasets->stages();
  ASSERT_EQ(stages.size(), 4000u);
  EXPECT_EQ(json::serialize(stages.front().as_object().at("jobs")), R"(["1"])");
  cancel_all();
}

// Each has a worker of 11 MB, and needs no turn at the drive.
TEST_F(RequestsCost, ARequestOfManyCachedDatasetsLooksAtAFewAtATime) {
  std::string rows;
  for (int i = 0; i < 60; ++i)
    rows += std::string(i == 0 ? "" : ", ") + R"({"name": "dataset)" + std::to_string(i + 2) +
            R"(", "state": "ready", "path": "/c/1"})";
  worker.on("catalog", "printf '%s\\n' '{\"result\": {\"datasets\": [" + rows + "], \"usage\": {}}}'");
  worker.on("stage", "mkdir -p now; : > now/$$; ls now | wc -l >> peak; sleep 0.2; rm now/$$; " + staged());
  start();
  ask_for(60);
  ASSERT_TRUE(ends(jobs_asked.front()));
  std::istringstream peaks(text_of("peak"));
  int most = 0;
  for (int peak = 0; peaks >> peak;) most = std::max(most, peak);
  EXPECT_GT(most, 0);
  EXPECT_LE(most, 10);
}

// Ten workers wait for it, and another drive has a copy that is in the cache.
TEST_F(RequestsCost, ASourceThatDoesNotAnswerDelaysNoLookAtAnother) {
  std::string rows;
  const auto add = [&](const std::string& name, const std::string& volume) {
    config::Dataset dataset;
    dataset.name = dataset.path = name;
    dataset.volume = volume;
    settings.datasets[name] = dataset;
    rows += std::string(rows.empty() ? "" : ", ") + R"({"name": ")" + name +
            R"(", "state": "ready", "path": "/c/1"})";
    return name;
  };
  std::vector<std::string> slow;
  for (int i = 0; i < 12; ++i) slow.push_back(add("slow" + std::to_string(i), "slow"));
  add("first", "other");
  add("second", "other");
  worker.on("catalog", "printf '%s\\n' '{\"result\": {\"datasets\": [" + rows + "], \"usage\": {}}}'");
  worker.on("stage", note_request("stages.log") +
                         R"(case $request in *'"path":"slow'*|*'"path":"first'*) while)"
                         " [ ! -e go ]; do sleep 0.05; done;; esac; " +
                         staged());
  start();
  const auto waiting = stage_all(slow), copying = stage_all({"first"});
  ASSERT_TRUE(run_until(context, [&] { return worker.calls("stage") >= 10; }));
  const auto began = std::chrono::steady_clock::now();
  EXPECT_TRUE(ends(stage_all({"second"})));
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(15));
  std::ofstream(worker.folder() / "go") << "x";
  EXPECT_TRUE(ends(waiting));
  EXPECT_TRUE(ends(copying));
}

}  // namespace
}  // namespace spark::datasets
