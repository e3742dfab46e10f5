#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>

#include "staging/files/quiet_source.hpp"
#include "staging/outputs/published_with.hpp"
#include "staging/outputs/send_shard.hpp"
#include "tests/unit/staging/outputs/shards_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

// A job that is killed and resumes lower saves the same step again.
class Attempts : public ShardsTest {
 protected:
  void expect_first_published() {
    EXPECT_EQ(read_text(checkpoint_.path() / "ranks/a.bin"), noise(100'000, 1));
    EXPECT_EQ(read_text(checkpoint_.path() / "ranks/bb.bin"), noise(100'000, 2));
    const auto left = std::filesystem::directory_iterator(checkpoint_.folder);
    EXPECT_EQ(std::distance(left, {}), 2) << "the checkpoint and its manifest";
  }
  Result<SentShard> send_by_hand(const std::string& host, const std::string& attempt = "") {
    return send_shard(checkpoint_, {source_of(host), {host, "", attempt}, 0, {}, true}, 2, {}, kQuiet, stop_);
  }
  Result<SentShard> send_in_state(const std::string& host, std::int64_t state) {
    CopyOptions options;
    options.complete_state = state;
    return send_shard(checkpoint_, {source_of(host), {host, ""}}, 2, options, kQuiet, stop_);
  }
  void save_again(const std::string& host) {
    save(host, "ranks/" + host + ".bin", "of the second attempt of " + host);
  }
};

TEST_F(Attempts, ShardsOfTwoAreNotJoinedUntilAllHostsHaveSentOne) {
  save("a");
  save("bb");
  ASSERT_OK(send_by_hand("a", "7.0"));
  save_again("bb");
  const auto late = send_by_hand("bb", "7.1");
  ASSERT_OK(late);
  EXPECT_FALSE(late->joined.is_published);
  EXPECT_EQ(late->joined.hosts, Hosts{"bb"});
  EXPECT_EQ(late->joined.others, Hosts{"a"});
  EXPECT_FALSE(send_by_hand("bb")->joined.is_published) << "of no known attempt";
  ASSERT_OK(send_by_hand("bb", "7.1"));
  save_again("a");
  const auto last = send_by_hand("a", "7.1");
  ASSERT_OK(last);
  EXPECT_TRUE(last->joined.is_published);
  for (const std::string host : {"a", "bb"})
    EXPECT_EQ(read_text(checkpoint_.path() / ("ranks/" + host + ".bin")), "of the second attempt of " + host);
  EXPECT_FALSE(std::filesystem::exists(checkpoint_.shards()));
}

TEST_F(Attempts, AShardThatDidNotChangeIsSentForTheNextOneAsWell) {
  save("a");
  save("bb");
  ASSERT_OK(send_by_hand("a", "7.0"));
  ASSERT_OK(send_by_hand("bb", "7.1"));
  const auto again = send_by_hand("a", "7.1");
  ASSERT_OK(again);
  EXPECT_TRUE(again->report.unchanged && again->joined.is_published);
  expect_first_published();
}

TEST_F(Attempts, AShardOfTheNextOneStaysWhenAHostLearnsThatTheEarlierOneIsPublished) {
  save("a");
  save("bb");
  ASSERT_OK(send_by_hand("a", "7.0"));
  ASSERT_OK(send_by_hand("bb", "7.0"));
  send("bb");
  ASSERT_OK(note_attempt(checkpoint_.shards(), "bb", "7.1"));
  const auto learns = send_by_hand("a", "7.0");
  ASSERT_OK(learns);
  EXPECT_TRUE(learns->joined.is_published);
  EXPECT_EQ(attempt_of(checkpoint_.shards(), "bb"), "7.1");
}

// As one that was sent from a shell, without the environment of the job.
TEST_F(Attempts, AShardOfAKnownOneStaysAlsoForAHostThatKnowsNone) {
  save("a");
  save("bb");
  ASSERT_OK(send_by_hand("a"));
  ASSERT_OK(send_by_hand("bb"));
  send("bb");
  ASSERT_OK(note_attempt(checkpoint_.shards(), "bb", "7.1"));
  const auto learns = send_by_hand("a");
  ASSERT_OK(learns);
  EXPECT_TRUE(learns->joined.is_published);
  EXPECT_EQ(attempt_of(checkpoint_.shards(), "bb"), "7.1");
}

TEST_F(Attempts, AHostThatComesLateWithOtherFilesIsRefusedInsteadOfWaiting) {
  save("a");
  save("bb");
  ASSERT_OK(send_by_hand("a"));
  ASSERT_OK(send_by_hand("bb"));
  save_again("a");
  EXPECT_KIND(send_by_hand("a"), Errc::Refused);
  EXPECT_KIND(send_by_hand("a", "7.1"), Errc::Refused);
  expect_first_published();
}

// The file that both hosts wrote is there once, with the times of one of them.
class FilesOfBothHosts : public Attempts {
 protected:
  void save_both(const std::string& file, const std::string& content) {
    for (const std::string host : {"a", "bb"}) {
      save(host);
      save(host, file, content);
      std::filesystem::last_write_time(source_of(host) / file, std::filesystem::file_time_type::clock::now() -
                                                                   std::chrono::hours(host.size()));
    }
  }
  void expect_both_learn() {
    for (const std::string host : {"a", "bb"}) {
      const auto learns = send_by_hand(host);
      ASSERT_OK(learns);
      EXPECT_TRUE(learns->joined.is_published && learns->report.unchanged) << host;
    }
    EXPECT_FALSE(std::filesystem::exists(checkpoint_.shards()));
  }
  const std::string large_ = noise(kHashPiece * 2 + 4096, 9);
};

TEST_F(FilesOfBothHosts, AreFoundByTheirContentWhateverTheirSize) {
  save_both("embeddings.bin", large_);
  ASSERT_OK(send_by_hand("a"));
  ASSERT_OK(send_by_hand("bb"));
  expect_both_learn();
}

TEST_F(FilesOfBothHosts, MayBeLinksToTheSame) {
  save_both("small", "of both");
  for (const std::string host : {"a", "bb"}) {
    std::filesystem::create_symlink("config", source_of(host) / "current");
    const timespec times[] = {{0, UTIME_OMIT}, {1'000'000 + static_cast<time_t>(host.size()), 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, (source_of(host) / "current").c_str(), times, AT_SYMLINK_NOFOLLOW), 0);
  }
  ASSERT_OK(send_by_hand("a"));
  ASSERT_OK(send_by_hand("bb"));
  expect_both_learn();
  EXPECT_TRUE(*has_state_of(checkpoint_, source_of("bb"), stop_));
  std::filesystem::remove(source_of("bb") / "current");
  std::filesystem::create_symlink("small", source_of("bb") / "current");
  EXPECT_FALSE(*has_state_of(checkpoint_, source_of("bb"), stop_));
  EXPECT_KIND(send_by_hand("bb"), Errc::Refused) << "it leads elsewhere";
}

TEST_F(FilesOfBothHosts, AreOthersIfTheyDifferInTheirLastPiece) {
  save_both("embeddings.bin", large_);
  ASSERT_OK(send_by_hand("a"));
  ASSERT_OK(send_by_hand("bb"));
  std::string changed = large_;
  changed.back() = static_cast<char>(changed.back() + 1);
  save("bb", "embeddings.bin", changed);
  EXPECT_KIND(send_by_hand("bb"), Errc::Refused);
  EXPECT_EQ(read_text(checkpoint_.path() / "embeddings.bin"), large_);
}

// Which files are there is not what the requester has to know first.
TEST_F(FilesOfBothHosts, AreNotComparedForARefusalIfTheSourceIsInAnotherState) {
  save_both("embeddings.bin", large_);
  ASSERT_OK(send_by_hand("a"));
  ASSERT_OK(send_by_hand("bb"));
  CopyOptions options;
  options.complete_state = totals_of(source_of("bb")).written;
  save("bb", "embeddings.bin", "half of the next save");
  EXPECT_KIND(send_shard(checkpoint_, {source_of("bb"), {"bb", ""}, 0, {}, true}, 2, options, kQuiet, stop_),
              Errc::Mismatch);
}

// The request of an earlier attempt is called again while the next one saves.
TEST_F(Attempts, ASourceInAnotherStateLeavesTheShardThatWasSent) {
  save("a");
  save("a", "ranks/a-opt.bin", "optimizer");
  const std::int64_t state = totals_of(source_of("a")).written;
  ASSERT_OK(send_in_state("a", state));
  std::filesystem::remove(source_of("a") / "ranks/a-opt.bin");
  EXPECT_KIND(send_in_state("a", state), Errc::Mismatch);
  EXPECT_EQ(read_text(checkpoint_.shards() / "a/ranks/a-opt.bin"), "optimizer");
  save("bb");
  ASSERT_OK(send_by_hand("bb"));
  EXPECT_KIND(send_in_state("a", state), Errc::Mismatch) << "the half that is here is published";
}

}  // namespace
}  // namespace spark::staging
