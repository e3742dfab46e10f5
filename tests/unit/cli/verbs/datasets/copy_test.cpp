#include <gtest/gtest.h>

#include "tests/support/temp_folder.hpp"
#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

using test::TempFolder;

class Copy : public ::testing::Test {
 protected:
  void SetUp() override {
    program.context.copy = [this](const auto& from, const auto& to, const auto& how, const auto& progress,
                                  const auto&) -> Result<staging::CopyReport> {
      source = from;
      destination = to;
      options = how;
      for (unsigned step = 0; step < 4; ++step) {
        staging::CopyProgress now;
        now.phase = staging::CopyPhase::Copying;
        now.bytes_done = step * kGiB;
        now.bytes_total = 4 * kGiB;
        now.files_done = step;
        now.files_total = 4;
        now.seconds = step;
        now.bytes_per_second = rate;
        now.eta_s = eta;
        now.bottleneck = bottleneck;
        progress(now);
        program.timer.sleep(Duration(3000));
      }
      return answer;
    };
  }

  Program program;
  std::filesystem::path source, destination;
  staging::CopyOptions options;
  Bytes rate = 0;
  std::optional<double> eta;
  std::string bottleneck;
  Result<staging::CopyReport> answer =
      staging::CopyReport{4 * kGiB, 4, 12.0, "abcd", kGiB, 0, 0, kMiB, 0, false, {}, {}};
};

TEST_F(Copy, PrintsProgressAndTheResult) {
  EXPECT_EQ(program.run({"copy", "/mnt/a", "/data/b/"}), 0);
  EXPECT_EQ(source, "/mnt/a");
  EXPECT_EQ(destination, "/data/b");
  expect_golden("copy.txt", program.output() + "--- stderr\n" + program.errors());
}

TEST_F(Copy, ShowsRateTimeLeftAndBottleneck) {
  rate = 2'500'000'000;
  eta = 41.2;
  bottleneck = "local drive";
  EXPECT_EQ(program.run({"copy", "/mnt/a", "/data/b"}), 0);
  EXPECT_NE(program.errors().find("(50 %), 2.50 GB/s, 42 s left, limited by: local drive\n"),
            std::string::npos)
      << program.errors();
}

TEST_F(Copy, NamesTheBottleneckBeforeItKnowsARate) {
  bottleneck = "source";
  EXPECT_EQ(program.run({"copy", "/mnt/a", "/data/b"}), 0);
  EXPECT_NE(program.errors().find("(0 %), limited by: source\n"), std::string::npos) << program.errors();
}

TEST_F(Copy, JsonHasTheDocumentedMembers) {
  EXPECT_EQ(program.run({"copy", "/mnt/a", "/data/b", "--json"}), 0);
  expect_golden("copy.json", program.output());
}

// Lexically, link/.. is the folder that contains the link; the kernel uses the folder that contains the
// link's target.
TEST_F(Copy, ADestinationThroughASymlinkIsResolvedAsTheKernelDoes) {
  TempFolder folder;
  std::filesystem::create_directories(folder / "disk/sub");
  std::filesystem::create_symlink(folder / "disk/sub", folder / "link");
  EXPECT_EQ(program.run({"copy", "/mnt/a", (folder / "link/../b/").string()}), 0);
  EXPECT_EQ(destination, std::filesystem::canonical(folder / "disk") / "b");
  EXPECT_NE(program.output().find("/disk/b: "), std::string::npos) << program.output();
}

TEST_F(Copy, ADestinationWithoutDotsKeepsTheNameThatItWasGiven) {
  TempFolder folder;
  std::filesystem::create_directories(folder / "disk");
  std::filesystem::create_symlink(folder / "disk", folder / "link");
  EXPECT_EQ(program.run({"copy", "/mnt/a", (folder / "link/./b").string()}), 0);
  EXPECT_EQ(destination, folder / "link/b");
}

TEST_F(Copy, PassesItsOptionsOn) {
  EXPECT_EQ(program.run({"copy", "--verify", "--max-rate", "1.5GB/s", "--exclude", "*.tmp", "--exclude",
                         ".git", "/mnt/a", "/data/b"}),
            0);
  EXPECT_TRUE(options.verify);
  EXPECT_EQ(options.rate.most, 1'500'000'000u);
  EXPECT_EQ(options.exclude, (std::vector<std::string>{"*.tmp", ".git"}));
}

TEST_F(Copy, AnExistingEqualCopyIsReported) {
  answer->unchanged = true;
  EXPECT_EQ(program.run({"copy", "/mnt/a", "/data/b"}), 0);
  EXPECT_EQ(program.output(), "/data/b: an equal copy is there already\n");
}

TEST_F(Copy, WarnsOfSkippedEntries) {
  answer->skipped = {"run/socket (socket)", "pipe (FIFO)"};
  answer->warnings = {"the owner of a/b was not kept"};
  EXPECT_EQ(program.run({"copy", "/mnt/a", "/data/b"}), 0);
  EXPECT_NE(program.errors().find(
                "skipped 2 that are neither file, folder nor symlink: run/socket (socket), pipe (FIFO)"),
            std::string::npos)
      << program.errors();
  EXPECT_NE(program.errors().find("spark-stage: the owner of a/b was not kept\n"), std::string::npos);
}

TEST_F(Copy, AnInterruptedCopyExitsWith130) {
  answer = fail(Errc::Cancelled, "stopped");
  EXPECT_EQ(program.run({"copy", "/mnt/a", "/data/b"}), 130);
}

TEST_F(Copy, AnInvalidRateIsAUsageError) {
  EXPECT_EQ(program.run({"copy", "/mnt/a", "/data/b", "--max-rate", "fast"}), 2);
}

}  // namespace
}  // namespace spark::cli
