// Who may rename in an output's folder on a volume puts a link, or a folder, where this host works.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "staging/outputs/destination_folder.hpp"
#include "staging/outputs/pointer.hpp"
#include "staging/outputs/published_copies.hpp"
#include "staging/outputs/send_shard.hpp"
#include "tests/unit/staging/outputs/shards_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;
namespace fs = std::filesystem;

class SwappedShardsTest : public ShardsTest {
 protected:
  SwappedShardsTest() { write_text(closed_ / "precious", "x"); }
  auto send_as(const std::string& host) {
    return send_shard(checkpoint_, {source_of(host), {host, ""}}, 2, {}, kQuiet, stop_);
  }
  // Of what is in the closed folder.
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(closed_)) all.push_back(entry.path().filename());
    return all;
  }
  fs::path closed_ = folder_ / "closed";
};

TEST_F(SwappedShardsTest, ALinkInThePlaceOfTheShardsIsNotFollowed) {
  fs::create_directory_symlink(closed_, checkpoint_.shards());
  save("a");
  EXPECT_FALSE(send_as("a"));
  EXPECT_FALSE(announce_shard(checkpoint_, "a", WallTime()));
  EXPECT_FALSE(join_shards(checkpoint_, 1, {}));
  EXPECT_EQ(names(), std::vector<std::string>{"precious"});
}

TEST_F(SwappedShardsTest, AFolderOfAnotherUserInThePlaceOfTheShardsIsRefused) {
  if (::geteuid() != 0) SPARK_SKIP("needs root");
  save_and_send("bb");
  ASSERT_EQ(::lchown(checkpoint_.shards().c_str(), 4903, 4903), 0);
  save("a");
  EXPECT_KIND(send_as("a"), Errc::Refused);
  EXPECT_KIND(announce_shard(checkpoint_, "a", WallTime()), Errc::Refused);
  EXPECT_FALSE(fs::exists(checkpoint_.path()));
}

// To create in the output's folder is enough for this.
TEST_F(SwappedShardsTest, WhatAnotherUserPutsInThePlaceOfABegunJoinIsNotRead) {
  ::alarm(60);  // for want of a writer a FIFO blocks for good
  const fs::path partial = checkpoint_.folder / ".step-1.spark-partial";
  save_and_send("a");
  fs::create_directory(partial);
  ASSERT_EQ(::mkfifo((partial / "state").c_str(), 0666), 0);
  EXPECT_FALSE(join_shards(checkpoint_, 1, {}));
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(partial.c_str(), 4903, 4903), 0);
    EXPECT_KIND(join_shards(checkpoint_, 1, {}), Errc::Refused);
  }
  ::alarm(0);
}

TEST_F(SwappedShardsTest, AFolderThatGotTheNameOfShardsIsNotDeleted) {
  fs::rename(closed_, checkpoint_.shards());
  write_text(folder_ / "source/step-9/model", "x");
  ASSERT_OK(copy(folder_ / "source/step-9", checkpoint_.folder / "step-9", {}, kQuiet, stop_));
  EXPECT_KIND(remove_older_shards(checkpoint_.folder, {{}, true}), Errc::Refused);
  EXPECT_TRUE(fs::exists(checkpoint_.shards() / "precious"));
}

TEST_F(SwappedShardsTest, AFileThatGotTheNameOfAPointerIsNotReplaced) {
  for (const Completeness::Rule rule : {Completeness::Rule::Rename, Completeness::Rule::DeepSpeed}) {
    const fs::path volume = folder_ / std::to_string(static_cast<int>(rule));
    const std::string thesis(5'000, 'x');
    write_text(folder_ / "source/step-1/model", "x");
    fs::create_directories(volume);
    ASSERT_OK(copy(folder_ / "source/step-1", volume / "step-1", {}, kQuiet, stop_));
    Completeness completeness;
    completeness.rule = rule;
    for (const char* name : {"latest", ".latest.spark-new"}) write_text(volume / name, thesis);
    EXPECT_KIND(point_at_highest(volume, completeness), Errc::Refused);
    EXPECT_EQ(read_text(volume / "latest"), thesis);
    fs::remove(volume / "latest");
    ASSERT_OK(point_at_highest(volume, completeness));
    EXPECT_EQ(pointer_in(volume, completeness), "step-1");
    EXPECT_EQ(read_text(volume / ".latest.spark-new"), thesis);
  }
}

TEST_F(SwappedShardsTest, ALinkInThePlaceOfTheOutputsFolderIsNotFollowed) {
  const auto made = make_destination_folder(folder_.path(), "volume");
  ASSERT_OK(made);
  for (const char* name : {"step-1", "step-2"}) {
    write_text(folder_ / "source" / name / "model", "x");
    ASSERT_OK(copy(folder_ / "source" / name, made->path / name, {}, kQuiet, stop_));
    write_text(closed_ / name / "precious", "x");
  }
  fs::rename(folder_ / "volume", folder_ / "away");
  fs::create_directory_symlink(closed_, folder_ / "volume");
  Completeness rename;
  rename.rule = Completeness::Rule::Rename;
  ASSERT_OK(point_at_highest(made->path, rename));
  EXPECT_EQ(fs::read_symlink(folder_ / "away/latest"), "step-2");
  EXPECT_FALSE(fs::is_symlink(fs::symlink_status(closed_ / "latest")));
  const auto removed = remove_older_copies(made->path, Keep{1});
  ASSERT_OK(removed);
  EXPECT_EQ(removed->size(), 1U);
  EXPECT_FALSE(fs::exists(folder_ / "away/step-1"));
  EXPECT_TRUE(fs::exists(closed_ / "step-1/precious"));
}

}  // namespace
}  // namespace spark::staging
