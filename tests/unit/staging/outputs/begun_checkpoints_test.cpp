#include "staging/outputs/begun_checkpoints.hpp"

#include "staging/copy/copy_with.hpp"
#include "staging/files/quiet_source.hpp"
#include "staging/outputs/shards.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging {
namespace {

using namespace test;

TEST(BegunCheckpoints, AreCheckpointsWithSomeShardsPresent) {
  TempFolder folder;
  const StopFlag stop{false};
  const auto send = [&](const std::string& step, const std::string& host) {
    const auto source = folder / ("source-" + host) / step;
    std::filesystem::create_directories(source);
    write_text(source / (host + ".bin"), noise(1'000, 1));
    std::filesystem::create_directories(folder / "volume");
    const ShardedCheckpoint checkpoint{folder / "volume", step};
    ASSERT_OK(make_shards(checkpoint, host));
    ASSERT_OK(copy(source, checkpoint.shards() / host, {}, kQuiet, stop));
  };
  const auto progress_of = [&](const std::string& step, const std::string& host) {
    const auto all = begun_checkpoints(folder / "volume", host);
    return std::ranges::find(all.value(), step, &BegunCheckpoint::name)->others_progress;
  };
  send("step-1", "a");
  send("step-2", "a");
  send("step-2", "bb");
  auto begun = begun_checkpoints(folder / "volume", "bb");
  ASSERT_OK(begun);
  std::ranges::sort(*begun, {}, &BegunCheckpoint::name);
  ASSERT_EQ(begun->size(), 2u);
  EXPECT_EQ(begun->front().name, "step-1");
  EXPECT_EQ(begun->front().own_written, 0);
  EXPECT_TRUE(begun->front().has_others);
  EXPECT_EQ(begun->back().name, "step-2");
  EXPECT_EQ(begun->back().own_written, totals_of(folder / "source-bb/step-2").written);
  EXPECT_TRUE(begun->back().has_others);
  EXPECT_EQ(begun->back().others_progress, 1u);
  const auto partial = folder / "volume/.step-2.spark-shards/.ccc.spark-partial";
  std::filesystem::create_directory(partial);
  write_text(partial / "journal", "ten bytes.");
  EXPECT_EQ(progress_of("step-2", "bb"), 12u);
  EXPECT_EQ(progress_of("step-2", "ccc"), 2u) << "its own copy does not count";
  std::filesystem::remove_all(partial);
  const auto again = folder / "volume/.step-2.spark-shards/.a.spark-partial";
  std::filesystem::create_directory(again);
  EXPECT_EQ(progress_of("step-2", "bb"), 1u) << "it only asks whether all are there";
  write_text(again / "journal", "ten bytes.");
  EXPECT_EQ(progress_of("step-2", "bb"), 11u) << "the job has saved it again";
  std::filesystem::remove_all(again);
  const auto tell = [&](const std::string& step, int now) {
    ASSERT_OK(announce_shard({folder / "volume", step}, "ccc", WallTime(std::chrono::milliseconds(now))));
  };
  tell("step-2", 1'000);
  EXPECT_EQ(progress_of("step-2", "bb"), 1'001u);
  EXPECT_EQ(progress_of("step-2", "ccc"), 2u) << "its own sign does not count";
  tell("step-2", 11'000);
  EXPECT_EQ(progress_of("step-2", "bb"), 11'001u);
  tell("step-3", 1'000);
  EXPECT_FALSE(std::filesystem::exists(folder / "volume/.step-3.spark-shards")) << "nobody waits for it";
  ASSERT_OK(join_shards({folder / "volume", "step-2"}, 2));
  EXPECT_EQ(begun_checkpoints(folder / "volume", "bb")->size(), 1u);
}

}  // namespace
}  // namespace spark::staging
