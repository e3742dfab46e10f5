// Who may rename in an output's folder on a volume puts a link, or a folder, where this host works.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "staging/outputs/destination_folder.hpp"
#include "staging/outputs/pointer.hpp"
#include "staging/outputs/published_copies.hpp"
#include "staging/outputs/send_shard.hpp"
#include "tests/support/skip.hpp"
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
  void publish_newer() {
    write_text(folder_ / "source/step-9/model", "x");
    ASSERT_OK(copy(folder_ / "source/step-9", checkpoint_.folder / "step-9", {}, kQuiet, stop_));
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

// It has no mark, and the only copies of files on the volume.
TEST_F(SwappedShardsTest, AJoinThatAnEarlierVersionBeganIsRefusedAndToBeKept) {
  fs::permissions(checkpoint_.folder, fs::perms(0775));
  save_and_send("a");
  EXPECT_FALSE(join_shards(checkpoint_, 1, {}, stop_after(1)));
  const fs::path partial = checkpoint_.folder / ".step-1.spark-partial";
  fs::remove(partial / "..step-1.spark-partial.spark-mark");
  const auto joined = join_shards(checkpoint_, 1, {});
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().kind, Errc::Refused);
  EXPECT_NE(joined.error().hint.find("rename it, and keep it"), std::string::npos) << joined.error().hint;
  EXPECT_TRUE(fs::exists(partial / "data"));
}

TEST_F(SwappedShardsTest, AFolderThatGotTheNameOfShardsIsNotDeleted) {
  fs::rename(closed_, checkpoint_.shards());
  publish_newer();
  EXPECT_KIND(remove_older_shards(checkpoint_.folder, {{}, true}), Errc::Refused);
  EXPECT_TRUE(fs::exists(checkpoint_.shards() / "precious"));
}

// Who may write to that folder gives what is in it other names, and puts anything beside it.
TEST_F(SwappedShardsTest, AFolderWithForgedShardsIsNotDeleted) {
  publish_newer();
  const auto expect_refused = [&](const fs::path& private_one) {
    fs::permissions(checkpoint_.shards(), fs::perms(0775));
    fs::last_write_time(checkpoint_.shards(), fs::file_time_type::clock::now() - std::chrono::hours(1));
    EXPECT_FALSE(remove_older_shards(checkpoint_.folder, {{}, true})) << private_one;
    EXPECT_EQ(read_text(checkpoint_.shards() / private_one / "chapter"), "x");
    fs::remove_all(checkpoint_.shards());
  };
  for (const char* name : {".x.spark-y", ".nfs000000000000000100000001", ".a.spark-partial",
                           ".a.spark-planned", ".a.spark-manifest", "..a.spark-partial.stuck", ".lock2"}) {
    write_text(checkpoint_.shards() / name / "chapter", "x");
    expect_refused(name);
  }
  for (const char* beside : {".a.spark-partial/data", ".a.spark-partial/manifest", ".a.spark-manifest"}) {
    write_text(checkpoint_.shards() / "a/chapter", "x");
    write_text(checkpoint_.shards() / beside, "x");
    expect_refused("a");
  }
}

TEST_F(SwappedShardsTest, ShardsAreDeletedWithAllThatTheirHostsLeave) {
  save_and_send("a");
  fs::permissions(checkpoint_.shards(), fs::perms(0775));
  const fs::path partial = checkpoint_.shards() / ".bb.spark-partial";
  {
    auto stuck = PartialArea::try_open(partial);
    ASSERT_OK(stuck);
    write_text(stuck->data() / "half", "x");
    ASSERT_OK(PartialArea::leave_behind(partial));
    write_text(PartialArea::look_at(partial)->folder() / "journal", "x");
  }
  ASSERT_OK(announce_shard(checkpoint_, "bb", WallTime()));
  write_text(checkpoint_.shards() / ".nfs000000000000000100000001", "deleted, but still open");
  publish_newer();
  ASSERT_OK(remove_older_shards(checkpoint_.folder, {{}, true}));
  EXPECT_FALSE(fs::exists(checkpoint_.shards()));
}

TEST_F(SwappedShardsTest, AFifoDelaysNoAnnouncement) {
  ::alarm(60);  // for want of a reader a FIFO blocks for good
  ASSERT_OK(make_shards(checkpoint_, "a"));
  ASSERT_EQ(::mkfifo((checkpoint_.shards() / ".a.spark-planned").c_str(), 0666), 0);
  ASSERT_OK(announce_shard(checkpoint_, "a", WallTime()));
  ::alarm(0);
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
  PruneNotes notes;
  const auto removed = remove_older_copies(made->path, Keep{1}, notes);
  ASSERT_OK(removed);
  EXPECT_EQ(removed->size(), 1U);
  EXPECT_FALSE(fs::exists(folder_ / "away/step-1"));
  EXPECT_TRUE(fs::exists(closed_ / "step-1/precious"));
}

}  // namespace
}  // namespace spark::staging
