#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/temp_folder.hpp"
#include "tests/unit/cli/fixture.hpp"

namespace spark::cli {
namespace {

constexpr char kAsk[] = "GET /v1/outputs/run7/latest";

TEST(Latest, PrintsThePathOfALocalCheckpoint) {
  Program program;
  program.client.answer(kAsk, 200, R"({"name": "step-2", "local": "/out/step-2"})");
  EXPECT_EQ(program.run({"latest", "run7"}), 0);
  EXPECT_EQ(program.output(), "/out/step-2\n");
}

TEST(Latest, NamesALaterOneOfAnotherSeries) {
  Program program;
  program.client.answer(kAsk, 200,
                        R"({"name": "stage1_step_5000.pt", "local": "/out/stage1_step_5000.pt",
                            "later": {"name": "stage2_step_100.pt"}})");
  EXPECT_EQ(program.run({"latest", "run7"}), 0);
  EXPECT_EQ(program.output(), "/out/stage1_step_5000.pt\n");
  EXPECT_NE(program.errors().find("stage2_step_100.pt was saved later than stage1_step_5000.pt"),
            std::string::npos)
      << program.errors();
}

TEST(Latest, WaitsForTheShardsOfOtherHostsWithOneMessage) {
  Program program;
  for (int i = 0; i < 3; ++i)
    program.client.answer(kAsk, 200, R"({"pending": {"name": "step-3", "may_publish": true}})");
  program.client.answer(kAsk, 200, R"({"name": "step-3", "local": "/out/step-3"})");
  EXPECT_EQ(program.run({"latest", "run7"}), 0);
  EXPECT_EQ(program.output(), "/out/step-3\n");
  EXPECT_EQ(program.errors(), "spark-stage: waiting for other hosts' shards of step-3\n");
}

TEST(Latest, UsesAPublishedCheckpointIfTheJobKeepsSavingNewerOnes) {
  Program program;
  const auto answer = [&](const std::string& published, const std::string& pending) {
    program.client.answer(kAsk, 200,
                          R"({"name": ")" + published + R"(", "dataset": "nas:run7/)" + published +
                              R"(", "local": "/out/)" + published + R"(", "pending": {"name": ")" + pending +
                              R"(", "may_publish": true}})");
  };
  answer("step-1", "step-3");
  answer("step-1", "step-4");
  answer("step-3", "step-5");
  EXPECT_EQ(program.run({"latest", "run7"}), 0);
  EXPECT_EQ(program.output(), "/out/step-3\n");
}

TEST(Latest, StopsWaitingForACheckpointThatAnotherHostNeverSends) {
  Program program;
  program.client.answer(kAsk, 200, R"({"pending": {"name": "step-3", "may_publish": false}})");
  EXPECT_EQ(program.run({"latest", "run7"}), 3);
  EXPECT_NE(program.errors().find("no checkpoint is published"), std::string::npos) << program.errors();
}

TEST(Latest, WaitsAsLongAsTheDaemonSaysAndThenUsesWhatIsPublished) {
  Program program;
  const auto answer = [&](const std::string& name, const std::string& may_publish) {
    program.client.answer(kAsk, 200,
                          R"({"name": ")" + name + R"(", "local": "/out/)" + name +
                              R"(", "dataset": "nas:run7/)" + name +
                              R"(", "pending": {"name": "step-3", "may_publish": )" + may_publish + "}}");
  };
  for (int i = 0; i < 300; ++i) answer("step-1", "true");
  answer("step-2", "false");
  EXPECT_EQ(program.run({"latest", "run7"}), 0);
  EXPECT_EQ(program.output(), "/out/step-2\n");
}

TEST(Latest, EndsWithTheStatusOfAnInterruptionIfItIsInterruptedWhileItWaits) {
  Program program;
  program.client.answer(kAsk, 200, R"({"pending": {"name": "step-3", "may_publish": true}})");
  program.timer.on_sleep = [&] { program.stop = true; };
  EXPECT_EQ(program.run({"latest", "run7"}), 130);
}

class LatestOnTheVolume : public testing::Test {
 protected:
  void answer(const std::string& name) {
    program.client.answer(kAsk, 200, R"({"name": ")" + name + R"(", "dataset": "nas:run7/)" + name + R"("})");
  }
  void end_staging(const std::string& event) {
    program.client.answer("POST /v1/stagings", 202, R"({"id": "5", "started": "2026-11-24T12:00:00Z"})");
    program.client.stream_once("/v1/jobs/5/events", {{event}});
  }
  const std::string deleted_ =
      R"({"event": "failed", "error": {"kind": "not_found", "what": "run7/step-5: No such file or directory", "hint": ""}})";
  Program program;
};

// By another host, which has published a newer one.
TEST_F(LatestOnTheVolume, IsAskedForAgainIfItWasDeletedBeforeItWasStaged) {
  answer("step-5");
  answer("step-6");
  end_staging(deleted_);
  end_staging(
      R"({"event": "done", "result": {"datasets": [{"name": "nas:run7/step-6", "state": "ready", "path": "/cache/step-6"}]}})");
  EXPECT_EQ(program.run({"latest", "run7"}), 0) << program.errors();
  EXPECT_EQ(program.output(), "/cache/step-6\n");
}

// Ultralytics loads a model only from a name that ends with ".pt".
TEST_F(LatestOnTheVolume, KeepsTheNameOfACheckpointThatIsOneFile) {
  const test::TempFolder cache;
  const auto folder = cache / "data/nas%3arun7%2flast.pt", named = cache / ".named/nas%3arun7%2flast.pt/1";
  std::filesystem::create_directories(folder);
  std::filesystem::create_directories(named);
  std::ofstream(folder / "1") << "weights";
  const auto print = [&] {
    answer("last.pt");
    end_staging(
        R"({"event": "done", "result": {"datasets": [{"name": "nas:run7/last.pt", "state": "ready", "path": ")" +
        (folder / "1").native() + R"("}]}})");
    EXPECT_EQ(program.run({"latest", "run7"}), 0) << program.errors();
    return program.output();
  };
  std::filesystem::create_symlink(folder / "2", named / "last.pt");
  EXPECT_EQ(print(), (folder / "1").native() + "\n") << "the link leads to a newer one";
  std::filesystem::remove(named / "last.pt");
  std::filesystem::create_symlink("../../../data/nas%3arun7%2flast.pt/1", named / "last.pt");
  EXPECT_THAT(print(), testing::EndsWith((named / "last.pt").native() + "\n"));
}

TEST_F(LatestOnTheVolume, IsUnavailableAndNotMissingIfEachIsDeletedBeforeItWasStaged) {
  answer("step-5");
  for (int i = 0; i < 10; ++i) end_staging(deleted_);
  EXPECT_EQ(program.run({"latest", "run7"}), 4);
  EXPECT_NE(program.errors().find("step-5"), std::string::npos) << program.errors();
}

}  // namespace
}  // namespace spark::cli
