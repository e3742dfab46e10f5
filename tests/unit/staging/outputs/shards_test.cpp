#include "staging/outputs/shards.hpp"

#include "staging/copy/copy_with.hpp"
#include "staging/outputs/published_copies.hpp"
#include "staging/outputs/published_with.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging {
namespace {

using namespace test;

class Shards : public testing::Test {
 protected:
  Shards() { std::filesystem::create_directories(checkpoint_.folder); }
  // The folder written by this host's job.
  std::filesystem::path source_of(const std::string& host) const {
    return folder_ / ("source-" + host) / "step-1";
  }
  void save(const std::string& host, const std::string& file, const std::string& content) {
    std::filesystem::create_directories((source_of(host) / file).parent_path());
    write_text(source_of(host) / file, content);
  }
  void send(const std::string& host) {
    const auto path = make_shard_path(checkpoint_, host);
    ASSERT_OK(path);
    ASSERT_OK(copy(source_of(host), *path, {}, kQuiet, stop_));
  }
  void save_and_send(const std::string& host) {
    save(host, "ranks/" + host + ".bin", noise(100'000, host.size()));
    save(host, "config", "of all");
    send(host);
  }
  bool is_published_with(const std::string& host) {
    const auto answer = staging::is_published_with(checkpoint_, source_of(host), stop_);
    EXPECT_TRUE(answer) << answer.error().message();
    return answer && *answer;
  }
  using Hosts = std::vector<std::string>;

  TempFolder folder_;
  ShardedCheckpoint checkpoint_{folder_ / "volume", "step-1"};
  StopFlag stop_{false};
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

TEST_F(Shards, AnInterruptedJoinIsCompletedByTheNext) {
  save_and_send("a");
  save_and_send("bb");
  const auto data = folder_ / "volume/.step-1.spark-partial/data";
  std::filesystem::create_directories(data / "ranks");
  std::filesystem::permissions(data.parent_path(), std::filesystem::perms::owner_all);
  std::filesystem::rename(checkpoint_.shards() / "a/ranks/a.bin", data / "ranks/a.bin");
  const auto joined = join_shards(checkpoint_, 2);
  ASSERT_OK(joined);
  EXPECT_TRUE(joined->is_published);
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

TEST_F(Shards, ShardsOfAnOlderIncompleteCheckpointAreDeleted) {
  save_and_send("a");
  const auto old = checkpoint_.shards();
  ASSERT_OK(remove_older_shards(checkpoint_.folder));
  EXPECT_TRUE(std::filesystem::exists(old)) << "it is the newest";
  const auto source = folder_ / "step-2";
  std::filesystem::create_directories(source);
  std::filesystem::last_write_time(source,
                                   std::filesystem::file_time_type::clock::now() + std::chrono::seconds(10));
  ASSERT_OK(copy(source, checkpoint_.folder / "step-2", {}, kQuiet, stop_));
  ASSERT_OK(remove_older_shards(checkpoint_.folder));
  EXPECT_FALSE(std::filesystem::exists(old));
}

TEST_F(Shards, ShardsLeftByAnInterruptedCallAreDeleted) {
  ASSERT_OK(remove_published_shards(checkpoint_));
  save_and_send("a");
  ASSERT_OK(remove_published_shards(checkpoint_));
  EXPECT_FALSE(std::filesystem::exists(checkpoint_.shards()));
}

TEST_F(Shards, AHostsNameMustBeAValidFolderName) {
  for (const char* host : {"", ".", "..", "a/b", ".hidden"})
    EXPECT_EQ(make_shard_path(checkpoint_, host).error().kind, Errc::Invalid) << host;
}

}  // namespace
}  // namespace spark::staging
