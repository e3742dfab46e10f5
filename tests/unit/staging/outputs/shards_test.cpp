#include "staging/outputs/shards.hpp"

#include <chrono>
#include <limits>
#include <thread>

#include "staging/outputs/begun_join.hpp"
#include "staging/outputs/published_copies.hpp"
#include "staging/outputs/published_with.hpp"
#include "tests/unit/staging/outputs/shards_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

class Shards : public ShardsTest {
 protected:
  bool is_published_with(const std::string& host) {
    const auto answer =
        staging::is_published_with(checkpoint_, source_of(host), {Reads::All, {}, kQuiet, stop_});
    EXPECT_TRUE(answer) << answer.error().message();
    return answer && *answer;
  }
  void publish_newer() {
    const auto source = folder_ / "step-2";
    std::filesystem::create_directories(source);
    ASSERT_OK(copy(source, checkpoint_.folder / "step-2", {}, kQuiet, stop_));
  }
  static constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  const PublishedShards newer_{{{"a", kEnd}, {"bb", kEnd}}, true};
};

TEST_F(Shards, NothingIsPublishedBeforeAllHostsHaveSentTheirs) {
  save_and_send("a");
  const auto joined = join_shards(checkpoint_, 2);
  ASSERT_OK(joined);
  EXPECT_FALSE(joined->is_published);
  EXPECT_EQ(joined->hosts, Hosts{"a"});
  EXPECT_FALSE(std::filesystem::exists(checkpoint_.path()));
  EXPECT_EQ(published_copies(checkpoint_.folder)->size(), 0u);
}

TEST_F(Shards, TheLastHostPublishesAllFilesWithAManifest) {
  save_and_send("a");
  save_and_send("bb");
  const auto joined = join_shards(checkpoint_, 2);
  ASSERT_OK(joined);
  EXPECT_TRUE(joined->is_published);
  EXPECT_EQ(joined->hosts, (Hosts{"a", "bb"}));
  EXPECT_EQ(read_text(checkpoint_.path() / "ranks/a.bin"), noise(100'000, 1));
  EXPECT_EQ(read_text(checkpoint_.path() / "ranks/bb.bin"), noise(100'000, 2));
  EXPECT_EQ(read_text(checkpoint_.path() / "config"), "of all");
  const auto verified = verify_published(checkpoint_.path(), {}, kQuiet, stop_);
  ASSERT_OK(verified);
  EXPECT_EQ(verified->files, 3u);
  EXPECT_FALSE(std::filesystem::exists(checkpoint_.shards()));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "volume/.step-1.spark-partial"));
}

// The other host ends at the same time: it still has the lock of its copy, or of its own look.
TEST_F(Shards, HostsThatEndTogetherDoNotLeaveTheJoinToEachOther) {
  save_and_send("a");
  save_and_send("bb");
  auto others = lock_shards(checkpoint_.shards(), Holders::Many);
  ASSERT_OK(others);
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    *others = {};
  });
  const auto joined = join_shards(checkpoint_, 2);
  other.join();
  ASSERT_OK(joined);
  EXPECT_TRUE(joined->is_published);
}

TEST_F(Shards, DifferentFilesOfOneNameAreRefusedWithTheirHosts) {
  save_and_send("a");
  save("bb", "config", "another");
  send("bb");
  const auto joined = join_shards(checkpoint_, 2);
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().kind, Errc::Refused);
  for (const char* part : {"bb", " a ", "config"})
    EXPECT_NE(joined.error().what.find(part), std::string::npos) << joined.error().what;
  EXPECT_FALSE(std::filesystem::exists(checkpoint_.path()));
}

// Older versions of this program, which other hosts may still run, send them.
TEST_F(Shards, ShardsThatAreFilesAreNotJoinedAndStay) {
  for (const char* host : {"a", "bb"}) {
    write_text(source_of(host), "the whole checkpoint");
    send(host);
  }
  const auto joined = join_shards(checkpoint_, 2);
  EXPECT_KIND(joined, Errc::Invalid);
  for (const char* host : {"a", "bb"})
    EXPECT_EQ(read_text(checkpoint_.shards() / host), "the whole checkpoint");
  EXPECT_FALSE(std::filesystem::exists(checkpoint_.path()));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "volume/.step-1.spark-partial/data"));
}

TEST_F(Shards, DifferentAttemptsOfAJobAreNotMixed) {
  const auto save_and_send_by = [&](const std::string& attempt, const std::string& host) {
    save(host, "ranks/" + host + ".bin", noise(100'000, host.size()) + attempt);
    save(host, "DONE", attempt);
    send(host);
  };
  save_and_send_by("first attempt", "a");
  save_and_send_by("second attempt", "bb");
  const auto mixed = join_shards(checkpoint_, 2, {"bb", "DONE"});
  ASSERT_OK(mixed);
  EXPECT_FALSE(mixed->is_published);
  EXPECT_EQ(mixed->hosts, Hosts{"bb"});
  save_and_send_by("second attempt", "a");
  const auto joined = join_shards(checkpoint_, 2, {"a", "DONE"});
  ASSERT_OK(joined);
  EXPECT_TRUE(joined->is_published);
  EXPECT_EQ(read_text(checkpoint_.path() / "DONE"), "second attempt");
}

// A job that went back to an earlier step saves it again.
TEST_F(Shards, ALaterAttemptReplacesTheCheckpointOfAnEarlierOneIfMarkersTellThem) {
  for (const std::string attempt : {"first", "second"}) {
    for (const char* host : {"a", "bb"}) {
      save(host, "ranks/" + std::string(host) + ".bin", attempt);
      save(host, "DONE", attempt);
      send(host);
    }
    const auto joined = join_shards(checkpoint_, 2, {"a", "DONE"});
    ASSERT_OK(joined);
    EXPECT_TRUE(joined->is_published);
    EXPECT_EQ(read_text(checkpoint_.path() / "ranks/bb.bin"), attempt);
    ASSERT_OK(verify_published(checkpoint_.path(), {}, kQuiet, stop_));
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "volume/.step-1.spark-partial"));
}

TEST_F(Shards, AnInterruptedJoinIsCompletedByTheNextWhateverIsAskedOfIt) {
  save_and_send("a");
  save_and_send("bb");
  EXPECT_FALSE(join_shards(checkpoint_, 2, {}, stop_after(2)));
  EXPECT_EQ(*hosts_of_begun_join(checkpoint_), (Hosts{"a", "bb"}));
  const auto joined = join_shards(checkpoint_, 3, {"bb", "DONE"});
  ASSERT_OK(joined);
  EXPECT_TRUE(joined->is_published);
  ASSERT_OK(verify_published(checkpoint_.path(), {}, kQuiet, stop_));
}

TEST_F(Shards, WhatACopyOfOneHostLeftUnderTheNameIsNotPublished) {
  save_and_send("a");
  save_and_send("bb");
  write_text(folder_ / "volume/.step-1.spark-partial/data/left", "half");
  ASSERT_OK(join_shards(checkpoint_, 2));
  EXPECT_FALSE(std::filesystem::exists(checkpoint_.path() / "left"));
  ASSERT_OK(verify_published(checkpoint_.path(), {}, kQuiet, stop_));
}

TEST_F(Shards, ShardsOfACheckpointThatIsPublishedAlreadyAreDeleted) {
  for (int i = 0; i < 2; ++i) {
    save_and_send("a");
    save_and_send("bb");
    const auto joined = join_shards(checkpoint_, 2);
    ASSERT_OK(joined);
    EXPECT_TRUE(joined->is_published);
    EXPECT_FALSE(std::filesystem::exists(checkpoint_.shards()));
  }
  save("a", "config", "changed");
  save("bb", "config", "changed");
  send("a");
  send("bb");
  EXPECT_EQ(join_shards(checkpoint_, 2).error().kind, Errc::Refused);
}

TEST_F(Shards, AHostFindsItsShardsInThePublishedCheckpoint) {
  save_and_send("a");
  EXPECT_FALSE(is_published_with("a"));
  save_and_send("bb");
  ASSERT_OK(join_shards(checkpoint_, 2));
  EXPECT_TRUE(is_published_with("a"));
  EXPECT_TRUE(is_published_with("bb"));
  save("bb", "ranks/more.bin", "more");
  EXPECT_FALSE(is_published_with("bb"));
}

TEST_F(Shards, AShardThatIsOnlyAnotherFileToTheKernelHasTheStateThatIsPublished) {
  save_and_send("a");
  save_and_send("bb");
  ASSERT_OK(join_shards(checkpoint_, 2));
  const auto is_there = [&] {
    const auto answer = has_state_of(checkpoint_, source_of("a"), stop_);
    return answer && *answer;
  };
  EXPECT_TRUE(is_there());
  std::filesystem::permissions(source_of("a") / "ranks/a.bin", std::filesystem::perms::owner_read);
  EXPECT_TRUE(is_there());
  std::filesystem::remove(source_of("a") / "ranks/a.bin");
  save("a", "ranks/a.bin", noise(100'000, 3));
  EXPECT_FALSE(is_there()) << "it was saved again";
}

TEST_F(Shards, ShardsOfAnOlderIncompleteCheckpointAreDeleted) {
  save_and_send("a");
  publish_newer();
  ASSERT_OK(remove_older_shards(checkpoint_.folder, {{{"a", 1}, {"bb", kEnd}}, true}));
  EXPECT_TRUE(std::filesystem::exists(checkpoint_.shards())) << "it is newer on its host";
  ASSERT_OK(remove_older_shards(checkpoint_.folder, newer_));
  EXPECT_FALSE(std::filesystem::exists(checkpoint_.shards()));
}

TEST_F(Shards, ThoseOfAHostThatHasLeftTheJobAreDeletedByTheServersTimes) {
  save_and_send("gone");
  const auto begin = [&](std::chrono::hours before) {
    std::filesystem::last_write_time(checkpoint_.shards(),
                                     std::filesystem::file_time_type::clock::now() - before);
  };
  publish_newer();
  begin(std::chrono::hours(-1));
  ASSERT_OK(remove_older_shards(checkpoint_.folder, newer_));
  begin(std::chrono::hours(1));
  std::vector<std::string> told;
  const auto tell = [&](const std::string& name) { told.push_back(name); };
  ASSERT_OK(remove_older_shards(checkpoint_.folder, {{{"a", kEnd}}, false}, tell));
  EXPECT_TRUE(std::filesystem::exists(checkpoint_.shards()))
      << "it was begun after the publication, or its host may be one of the publication";
  EXPECT_TRUE(told.empty());
  ASSERT_OK(remove_older_shards(checkpoint_.folder, newer_, tell));
  EXPECT_EQ(told, std::vector<std::string>{"step-1"});
  EXPECT_FALSE(std::filesystem::exists(checkpoint_.shards()));
}

TEST_F(Shards, OldOnesAreDeletedWithWhatAnInterruptedJoinHadMoved) {
  save_and_send("a");
  save_and_send("bb");
  EXPECT_FALSE(join_shards(checkpoint_, 2, {}, stop_after(1)));
  const auto rest = checkpoint_.folder / ".step-0.spark-shards.spark-removed";
  std::filesystem::create_directory(rest);
  mark_rest(rest, ".spark-removed");
  publish_newer();
  ASSERT_OK(remove_older_shards(checkpoint_.folder, newer_));
  const auto left = std::filesystem::directory_iterator(checkpoint_.folder);
  EXPECT_EQ(std::distance(left, {}), 2) << "the newer checkpoint and its manifest";
}

// Of another checkpoint there, or an earlier call.
TEST_F(Shards, WhatCannotBeReadOrDeletedKeepsNoOldOnesFromThat) {
  save_and_send("a");
  publish_newer();
  write_text(checkpoint_.folder / "step-3", "of another user");
  write_text(checkpoint_.folder / ".step-3.spark-manifest", "cut");
  write_text(checkpoint_.folder / ".step-0.spark-shards", "in the way");
  const auto removed = remove_older_shards(checkpoint_.folder, newer_);
  EXPECT_FALSE(removed);
  EXPECT_FALSE(std::filesystem::exists(checkpoint_.shards()));
}

TEST_F(Shards, AnUnfinishedShardIsDeletedOnceANewerCheckpointIsPublished) {
  ASSERT_OK(make_shards(checkpoint_, "a"));
  const auto unfinished = checkpoint_.shards() / ".a.spark-partial/data";
  std::filesystem::create_directories(unfinished.parent_path());
  write_text(unfinished, "half");
  ASSERT_OK(remove_older_shards(checkpoint_.folder, newer_));
  EXPECT_TRUE(std::filesystem::exists(unfinished)) << "nothing is published";
  publish_newer();
  std::filesystem::last_write_time(checkpoint_.shards(),
                                   std::filesystem::file_time_type::clock::now() + std::chrono::hours(1));
  ASSERT_OK(remove_older_shards(checkpoint_.folder, newer_));
  EXPECT_TRUE(std::filesystem::exists(unfinished)) << "it was begun after the newest was published";
  std::filesystem::last_write_time(checkpoint_.shards(),
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  auto sending = lock_shards(checkpoint_.shards(), Holders::Many);
  ASSERT_OK(remove_older_shards(checkpoint_.folder, newer_));
  EXPECT_TRUE(std::filesystem::exists(unfinished)) << "its host is sending it";
  *sending = {};
  ASSERT_OK(remove_older_shards(checkpoint_.folder, newer_));
  EXPECT_FALSE(std::filesystem::exists(checkpoint_.shards()));
}

TEST_F(Shards, ShardsLeftByAnInterruptedCallAreDeleted) {
  ASSERT_OK(remove_published_shards(checkpoint_, {}));
  save_and_send("a");
  EXPECT_FALSE(remove_published_shards(checkpoint_, {})) << "nothing is published";
  EXPECT_TRUE(std::filesystem::exists(checkpoint_.shards()));
  ASSERT_OK(join_shards(checkpoint_, 1));
  send("a");
  ASSERT_OK(remove_published_shards(checkpoint_, {}));
  EXPECT_FALSE(std::filesystem::exists(checkpoint_.shards()));
}

// A host that sees its own shard of an earlier attempt published deletes none of the next one.
TEST_F(Shards, ThoseOfAnotherAttemptThanThePublishedOneStay) {
  const auto save_and_send_by = [&](const std::string& attempt, const std::string& host) {
    save(host, "ranks/" + host + ".bin", attempt);
    save(host, "DONE", attempt);
    send(host);
  };
  for (const char* host : {"a", "bb"}) save_and_send_by("first", host);
  ASSERT_OK(join_shards(checkpoint_, 2, {"a", "DONE"}));
  save_and_send_by("second", "bb");
  ASSERT_OK(remove_published_shards(checkpoint_, {"", "DONE"}));
  EXPECT_TRUE(std::filesystem::exists(checkpoint_.shards() / "bb/DONE"));
  save_and_send_by("first", "bb");
  ASSERT_OK(remove_published_shards(checkpoint_, {"", "DONE"}));
  EXPECT_FALSE(std::filesystem::exists(checkpoint_.shards()));
}

TEST_F(Shards, AHostsNameMustBeAValidFolderName) {
  for (const char* host : {"", ".", "..", "a/b", ".hidden"})
    EXPECT_KIND(make_shards(checkpoint_, host), Errc::Invalid) << host;
}

}  // namespace
}  // namespace spark::staging
