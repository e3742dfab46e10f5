// What requests cost the daemon's thread when a caller asks for much.
#include <ctime>

#include "tests/unit/daemon/datasets/fixture.hpp"

namespace spark::datasets {
namespace {

// Of this thread: other work on the computer does not count.
double processor_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

class RequestsCost : public DatasetsTest {
 protected:
  // Asks for that many more, and waits for none.
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
  // What still waits would hold itself.
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

// `status` shows each dataset with the jobs that want it: every dataset once looked through every job's
// names.
TEST_F(RequestsCost, AStatusCostsWhatItShowsAndNotItsSquare) {
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

}  // namespace
}  // namespace spark::datasets
