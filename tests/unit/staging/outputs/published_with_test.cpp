#include "staging/outputs/published_with.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>

#include "staging/copy/copy.hpp"
#include "tests/unit/staging/outputs/shards_fixture.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging {
namespace {

using namespace spark::staging::test;
using testing::HasSubstr;

class ReplacedSource : public testing::Test {
 protected:
  void send(const std::string& source) {
    std::filesystem::remove_all(folder_ / "volume");
    std::filesystem::create_directories(folder_ / "volume");
    write_text(folder_ / source / "model", "x");
    ASSERT_OK(copy(folder_ / source, folder_ / "volume/copy", {}, kQuiet, stop_));
  }
  // "ok", or the reason for a refusal.
  std::string answer_to(const std::string& source) const {
    const auto other = replaced_source(folder_ / "volume/copy", folder_ / source, false);
    return other ? "ok" : other.error().what;
  }

  TempFolder folder_;
  StopFlag stop_{false};
};

TEST_F(ReplacedSource, MayDifferInTheNamesOfJobsAlone) {
  const std::string uuid = "0f8fad5b-d9cb-469f-a165-70867728950e",
                    other = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
  const std::pair<std::string, std::string> jobs[] = {
      {"4711/out", "4712/out"},
      {"9999/out", "10000/out"},
      {"job-7/out", "job-12/out"},
      {"job-ab12/out", "job-cd34/out"},
      {"slurm_41/run/out", "slurm_42/run/out"},
      {"pods/" + uuid + "/out", "pods/" + other + "/out"},
      {"tmp.a8BcDeF901/out", "tmp.Xy12345678/out"},
      {".4711.spark-held/out", "4712/out"},
  };
  for (const auto& [before, now] : jobs) {
    send(before);
    EXPECT_EQ(answer_to(now), "ok") << before;
  }
  const std::pair<std::string, std::string> others[] = {
      {"llama-7b/out", "llama-70b/out"}, {"2024/out", "2025/out"},
      {"20260101/out", "20260102/out"},  {"run1/out", "run2/out"},
      {"fold/1/out", "fold/2/out"},      {"v1/out", "v2/out"},
      {"4711/out", "job-4711/out"},      {"4711/step-1", "4711/step-2"},
      {"4711/1000", "4711/2000"},        {"a/out", "a/b/out"},
      {"job-a/out", "job-b/out"},        {"alice/4711/out", "bob/4711/out"},
  };
  for (const auto& [before, now] : others) {
    send(before);
    EXPECT_THAT(answer_to(now),
                HasSubstr("a copy of another source is there: " + (folder_ / before).native()));
  }
}

TEST_F(ReplacedSource, IsNamedByARefusalWithThePartThatDiffers) {
  send("run1/4711/out");
  EXPECT_THAT(answer_to("run2/4712/out"), HasSubstr("run1/4711/out, with run1 where this one has run2"));
  const auto error = replaced_source(folder_ / "volume/copy", folder_ / "run2/4712/out", false).error();
  EXPECT_EQ(error.kind, Errc::Refused);
  EXPECT_THAT(error.hint, HasSubstr("--accept-source"));
}

TEST_F(ReplacedSource, IsToldForTheLogIfItsPathIsAnother) {
  send("4711/out");
  const auto told = [&](const std::string& source, bool accepts) {
    const auto other = replaced_source(folder_ / "volume/copy", folder_ / source, accepts);
    return other ? *other : other.error().what;
  };
  EXPECT_EQ(told("4711/out", false), "");
  EXPECT_EQ(told("4712/out", false), folder_ / "4711/out");
  EXPECT_EQ(told("extra", true), folder_ / "4711/out");
  std::filesystem::remove_all(folder_ / "volume/copy");
  std::filesystem::remove(folder_ / "volume/.copy.spark-manifest");
  EXPECT_EQ(told("extra", false), "") << "nothing is there";
}

using ReplacedShards = ShardsTest;

TEST_F(ReplacedShards, AreReplacedByAFolderThatHasAllTheirFilesAlone) {
  save_and_send("a");
  save_and_send("bb");
  ASSERT_OK(join_shards(checkpoint_, 2));
  const auto copy = checkpoint_.folder / checkpoint_.name;
  const auto of_one = replaced_source(copy, source_of("a"), false);
  ASSERT_FALSE(of_one);
  EXPECT_THAT(of_one.error().what, HasSubstr("several hosts' shards, with ranks/bb.bin"));
  save("a", "ranks/bb.bin", "consolidated");
  EXPECT_TRUE(replaced_source(copy, source_of("a"), false));
}

}  // namespace
}  // namespace spark::staging
