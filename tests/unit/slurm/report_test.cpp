#include <gmock/gmock.h>
#include <gtest/gtest.h>

extern "C" {
#include "slurm/report.h"
#include "slurm/wait.h"
}

namespace spark {
namespace {

using testing::ElementsAre;

std::vector<std::string> said;

void say(const char* line) {
  said.emplace_back(line);
}

Progress copying() {
  return {"imagenet", "copying", "", 1'234'000'000, 2'700'000'000, 512e6, 2.4};
}

class ReportTest : public testing::Test {
 protected:
  void SetUp() override { said.clear(); }

  // Simulates that the wait began, and the last line was printed, this long ago.
  void pass(int64_t ms) {
    report_.began_ms -= ms;
    report_.said_ms -= ms;
  }
  void progress(const char* phase, const char* reason = "") {
    Progress progress = copying();
    std::snprintf(progress.phase, sizeof progress.phase, "%s", phase);
    std::snprintf(progress.reason, sizeof progress.reason, "%s", reason);
    report_progress(&report_, &progress);
  }

  Report report_ = start_report("n1", say);
};

std::string described(const Progress& progress) {
  char text[512];
  describe_progress("n1", &progress, text, sizeof text);
  return text;
}

TEST_F(ReportTest, ALineShowsTheProgressAndTheTimeLeft) {
  Progress progress = copying();
  EXPECT_EQ(described(progress), "n1: imagenet: copying 45 % (1.2 GB of 2.7 GB, 512 MB/s, 3 s left)");
  progress.eta_s = -1;
  progress.bytes_per_second = 0;
  EXPECT_EQ(described(progress), "n1: imagenet: copying 45 % (1.2 GB of 2.7 GB)");
  progress.eta_s = 3700;
  EXPECT_EQ(described(progress), "n1: imagenet: copying 45 % (1.2 GB of 2.7 GB, 62 min left)");
  progress.eta_s = 36'700;
  EXPECT_EQ(described(progress), "n1: imagenet: copying 45 % (1.2 GB of 2.7 GB, 10 h 11 min left)");
}

TEST_F(ReportTest, AWaitWithoutProgressShowsItsReason) {
  EXPECT_EQ(described({"imagenet", "walking", "waits for room", 0, 0, 0, -1}),
            "n1: imagenet: walking: waits for room");
  EXPECT_EQ(described({"imagenet", "queued", "", 0, 0, 0, -1}), "n1: imagenet: queued");
}

TEST_F(ReportTest, AShortWaitIsSilent) {
  progress("copying");
  report_end(&report_);
  EXPECT_THAT(said, ElementsAre());
}

TEST_F(ReportTest, ALongWaitIsReportedEveryFiveSecondsAndAtItsEnd) {
  pass(1'000);
  progress("copying");
  progress("copying");
  pass(4'000);
  progress("flushing");
  EXPECT_EQ(said.size(), 1U);
  pass(1'000);
  progress("flushing");
  EXPECT_EQ(said.size(), 2U);
  report_end(&report_);
  ASSERT_EQ(said.size(), 3U);
  EXPECT_THAT(said.back(), testing::StartsWith("n1: staged after "));
}

TEST_F(ReportTest, AStallAndItsEndAreReportedImmediately) {
  progress("stalled", "volume data is away");
  progress("stalled", "volume data is away");
  progress("copying");
  EXPECT_THAT(
      said, ElementsAre(
                testing::EndsWith("stalled 45 % (1.2 GB of 2.7 GB, 512 MB/s, 3 s left): volume data is away"),
                testing::HasSubstr("copying")));
}

TEST_F(ReportTest, TheOtherTasksOfANodeAreSilent) {
  report_ = start_report("n1", nullptr);
  pass(60'000);
  progress("stalled");
  report_note(&report_, "lost");
  report_end(&report_);
  EXPECT_THAT(said, ElementsAre());
}

}  // namespace
}  // namespace spark
