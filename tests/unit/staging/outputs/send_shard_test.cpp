#include "staging/outputs/send_shard.hpp"

#include "staging/outputs/begun_join.hpp"
#include "staging/outputs/published_copies.hpp"
#include "tests/unit/staging/outputs/shards_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

class SendingShards : public ShardsTest {
 protected:
  Result<SentShard> call(const std::string& host, const ProgressSink& progress = kQuiet) {
    return send_shard(checkpoint_, {source_of(host), {host, ""}}, 2, {}, progress, stop_);
  }
  // Of a request that has sent its shard before.
  Result<SentShard> call_again(const std::string& host, const SentShard& earlier) {
    return send_shard(checkpoint_, {source_of(host), {host, ""}, earlier.shard_sent_ns}, 2, {}, kQuiet,
                      stop_);
  }
  void expect_published() {
    EXPECT_EQ(read_text(checkpoint_.path() / "ranks/a.bin"), noise(100'000, 1));
    EXPECT_EQ(read_text(checkpoint_.path() / "ranks/bb.bin"), noise(100'000, 2));
    const auto verified = verify_published(checkpoint_.path(), {}, kQuiet, stop_);
    ASSERT_OK(verified);
    EXPECT_EQ(verified->files, 3U);
    const auto left = std::filesystem::directory_iterator(checkpoint_.folder);
    EXPECT_EQ(std::distance(left, {}), 2) << "the checkpoint and its manifest";
  }
};

TEST_F(SendingShards, TheLastHostPublishesAndTheOthersLearnOfIt) {
  save("a");
  save("bb");
  const auto first = call("a");
  ASSERT_OK(first);
  EXPECT_FALSE(first->joined.is_published || first->report.unchanged);
  EXPECT_EQ(first->joined.hosts, Hosts{"a"});
  const auto last = call("bb");
  ASSERT_OK(last);
  EXPECT_TRUE(last->joined.is_published);
  EXPECT_EQ(last->joined.hosts, (Hosts{"a", "bb"}));
  const auto again = call("a");
  ASSERT_OK(again);
  EXPECT_TRUE(again->joined.is_published && again->report.unchanged);
  expect_published();
}

TEST_F(SendingShards, TheSignOfAPlannedShardIsGoneOnceItIsSent) {
  save("a");
  save("bb");
  ASSERT_OK(call("a"));
  ASSERT_OK(announce_shard(checkpoint_, "bb", WallTime()));
  EXPECT_TRUE(std::filesystem::exists(sign_of(checkpoint_.shards(), "bb")));
  const auto sent = send_shard(checkpoint_, {source_of("bb"), {"bb", ""}}, 3, {}, kQuiet, stop_);
  ASSERT_OK(sent);
  EXPECT_EQ(sent->joined.hosts, (Hosts{"a", "bb"}));
  EXPECT_FALSE(std::filesystem::exists(sign_of(checkpoint_.shards(), "bb")));
}

TEST_F(SendingShards, AHostThatCallsWhileAnotherPublishesWaitsAndChangesNothing) {
  save_and_send("a");
  save_and_send("bb");
  int steps = 0;
  const auto joined = join_shards(checkpoint_, 2, {}, [&](const char* step) -> Result<> {
    ++steps;
    for (const char* host : {"a", "bb"}) {
      const auto sent = call(host);
      EXPECT_TRUE(sent) << step << ": " << sent.error().message();
      EXPECT_TRUE(!sent || (!sent->joined.is_published && sent->joined.hosts.empty())) << step;
    }
    return {};
  });
  ASSERT_OK(joined);
  EXPECT_TRUE(joined->is_published);
  EXPECT_GT(steps, 5);
  expect_published();
}

TEST_F(SendingShards, AJoinThatWasInterruptedAnywhereIsCompletedByTheNextCallOfAnyHost) {
  save("a");
  save("bb");
  for (const char* host : {"a", "bb"}) {
    int steps = 1;
    for (bool is_whole = false; !is_whole; ++steps) {
      send("a");
      send("bb");
      is_whole = join_shards(checkpoint_, 2, {}, stop_after(steps)).has_value();
      for (const char* caller : {host, "a", "bb"}) {
        const auto sent = call(caller);
        ASSERT_TRUE(sent) << "after step " << steps << ": " << sent.error().message();
        EXPECT_TRUE(sent->joined.is_published) << "after step " << steps;
      }
      expect_published();
      std::filesystem::remove_all(checkpoint_.folder);
      std::filesystem::create_directories(checkpoint_.folder);
    }
    EXPECT_GT(steps, 6);
  }
}

// Otherwise the shards of two attempts could be mixed.
TEST_F(SendingShards, NoHostJoinsOrDeletesThemWhileAnotherSends) {
  save_and_send("a");
  save_and_send("bb");
  save("bb", "ranks/bb.bin", "of the next attempt");
  int looks = 0;
  const auto sent = call("bb", [&](const CopyProgress&) {
    if (++looks > 1) return;  // each look waits for the other host
    const auto joined = join_shards(checkpoint_, 2);
    ASSERT_OK(joined);
    EXPECT_FALSE(joined->is_published);
    ASSERT_OK(remove_published_shards(checkpoint_, {}));
    EXPECT_TRUE(std::filesystem::exists(checkpoint_.shards() / "a/ranks/a.bin"));
  });
  ASSERT_OK(sent);
  EXPECT_TRUE(sent->joined.is_published);
  EXPECT_GT(looks, 0);
  EXPECT_EQ(read_text(checkpoint_.path() / "ranks/bb.bin"), "of the next attempt");
}

TEST_F(SendingShards, HostsSendSideBySide) {
  save("a");
  save("bb");
  bool is_first = true;
  const auto sent = call("a", [&](const CopyProgress&) {
    if (!std::exchange(is_first, false)) return;
    const auto other = call("bb");
    ASSERT_OK(other);
    EXPECT_FALSE(other->joined.is_published);
    EXPECT_EQ(other->joined.hosts, Hosts{"bb"}) << "it says who has sent";
  });
  ASSERT_OK(sent);
  EXPECT_TRUE(sent->joined.is_published);
  expect_published();
}

TEST_F(SendingShards, WhatHostsSavedAgainAfterAnInterruptedJoinDoesNotReplaceIt) {
  save_and_send("a");
  save_and_send("bb");
  EXPECT_FALSE(join_shards(checkpoint_, 2, {}, stop_after(1)));
  for (const char* host : {"a", "bb"})
    save(host, "ranks/" + std::string(host) + ".bin", "the next attempt's");
  const auto first = call("a");
  ASSERT_OK(first);
  EXPECT_FALSE(first->joined.is_published);
  EXPECT_EQ(read_text(checkpoint_.path() / "ranks/bb.bin"), noise(100'000, 2));
  const auto sent = call("bb");
  EXPECT_KIND(sent, Errc::Refused);
  EXPECT_NE(sent.error().what.find("is there already"), std::string::npos) << sent.error().what;
  EXPECT_EQ(read_text(checkpoint_.path() / "ranks/bb.bin"), noise(100'000, 2));
}

TEST_F(SendingShards, AJoinWhoseShardsSomeoneDeletedBeginsAgain) {
  save_and_send("a");
  save_and_send("bb");
  EXPECT_FALSE(join_shards(checkpoint_, 2, {}, stop_after(1)));
  std::filesystem::remove_all(checkpoint_.shards());
  for (const char* host : {"a", "a", "bb"}) ASSERT_OK(call(host));
  expect_published();
}

TEST_F(SendingShards, AJoinWithItsNameIsCompletedAlsoIfItsShardsAreDeleted) {
  save_and_send("a");
  save_and_send("bb");
  EXPECT_FALSE(join_shards(checkpoint_, 2, {}, stop_at("flush")));
  ASSERT_OK(remove_begun_join(checkpoint_));
  std::filesystem::remove_all(checkpoint_.shards());
  expect_published();
}

// The earlier shard's manifest still has its name.
TEST_F(SendingShards, AShardWhosePublishingWasInterruptedIsJoinedWithItsOwnManifest) {
  save_and_send("a");
  save("a", "ranks/a.bin", "of the next attempt");
  CopyOptions options;
  options.earlier.replaced_in_two_steps = true;
  EXPECT_FALSE(copy_with({{}, stop_at("rename"), {}}, source_of("a"), checkpoint_.shards() / "a", options,
                         kQuiet, stop_));
  save("bb");
  const auto sent = call("bb");
  ASSERT_OK(sent);
  EXPECT_TRUE(sent->joined.is_published);
  EXPECT_EQ(read_text(checkpoint_.path() / "ranks/a.bin"), "of the next attempt");
  ASSERT_OK(verify_published(checkpoint_.path(), {}, kQuiet, stop_));
}

TEST_F(SendingShards, ACheckpointThatIsOneFileIsRefusedBeforeAnythingIsSent) {
  std::filesystem::create_directories(source_of("a").parent_path());
  write_text(source_of("a"), "the whole checkpoint");
  const auto sent = call("a");
  EXPECT_KIND(sent, Errc::Invalid);
  EXPECT_NE(sent.error().hint.find("folder"), std::string::npos) << sent.error().hint;
  EXPECT_FALSE(std::filesystem::exists(checkpoint_.shards()));
}

// The clock of bb is ahead of that of a, by more than the time between two saves.
TEST_F(SendingShards, OnlyShardsThatAreOlderOnTheirOwnHostAreDeletedAfterAPublication) {
  const auto now = std::filesystem::file_time_type::clock::now();
  const auto save_at = [&](const std::string& host, const std::string& name, std::chrono::minutes time) {
    checkpoint_.name = name;
    save(host);
    std::filesystem::last_write_time(source_of(host), now + time);
  };
  save_at("a", "step-0", std::chrono::minutes(1));
  ASSERT_OK(call("a"));
  save_at("a", "step-2", std::chrono::minutes(3));
  ASSERT_OK(call("a"));
  save_at("bb", "step-1", std::chrono::minutes(60));
  ASSERT_OK(call("bb"));
  save_at("a", "step-1", std::chrono::minutes(2));
  const auto sent = call("a");
  ASSERT_OK(sent);
  EXPECT_TRUE(sent->joined.is_published);
  EXPECT_FALSE(std::filesystem::exists(checkpoint_.folder / ".step-0.spark-shards"));
  EXPECT_TRUE(std::filesystem::exists(checkpoint_.folder / ".step-2.spark-shards/a/config"));
  ASSERT_OK(call("bb"));
  EXPECT_TRUE(std::filesystem::exists(checkpoint_.folder / ".step-2.spark-shards/a/config"))
      << "bb, which has none of step-2, can't tell which is older";
}

// Otherwise the shards of other hosts would be deleted by times that prove nothing.
TEST_F(SendingShards, APublicationByAnotherHostTellsOnlyTheTimeOfTheOwnShardIfItIsStillThere) {
  save("a");
  const OwnShard own{source_of("a"), {"a", ""}};
  const auto all = published_shards({true, {}, {{"a", 1}, {"bb", 2}}}, own);
  EXPECT_TRUE(all.are_all);
  const auto own_alone = published_shards({true, {}}, own);
  EXPECT_FALSE(own_alone.are_all);
  EXPECT_EQ(own_alone.times.size(), 1U);
  std::filesystem::remove_all(source_of("a"));
  const auto none = published_shards({true, {}}, own);
  EXPECT_FALSE(none.are_all);
  EXPECT_TRUE(none.times.empty());
}

TEST_F(SendingShards, WhatIsNotTheJobsAtTheNameIsRefused) {
  save_and_send("a");
  save_and_send("bb");
  write_text(checkpoint_.path() / "mine", "x");
  EXPECT_KIND(call("a"), Errc::Refused);
  EXPECT_EQ(read_text(checkpoint_.path() / "mine"), "x");
}

// In the folder of step-1, two hosts also save step-2, which is newer.
class ReplacedCheckpoint : public SendingShards {
 protected:
  void save_step(const std::string& name) {
    checkpoint_.name = name;
    for (const char* host : {"a", "bb"}) {
      save(host);
      std::filesystem::last_write_time(source_of(host), now_ + std::chrono::minutes(name.back() - '0'));
    }
  }
  SentShard send_first(const std::string& host) {
    save_step("step-1");
    auto sent = call(host);
    EXPECT_TRUE(sent) << sent.error().message();
    return sent ? std::move(*sent) : SentShard{};
  }
  void publish_next() {
    save_step("step-2");
    ASSERT_OK(call("a"));
    ASSERT_OK(call("bb"));
    checkpoint_.name = "step-1";
  }

  const std::filesystem::file_time_type now_ = std::filesystem::file_time_type::clock::now();
};

TEST_F(ReplacedCheckpoint, EndsTheRequestOfAHostWhoseShardWasDeleted) {
  const SentShard first = send_first("a");
  EXPECT_FALSE(first.joined.is_published);
  publish_next();
  ASSERT_FALSE(std::filesystem::exists(checkpoint_.shards()));
  const auto again = call_again("a", first);
  ASSERT_OK(again);
  EXPECT_EQ(again->replaced_by, "step-2");
  EXPECT_FALSE(again->joined.is_published);
  EXPECT_FALSE(std::filesystem::exists(checkpoint_.shards())) << "it was sent again";
}

TEST_F(ReplacedCheckpoint, EndsTheRequestAlsoIfItWasPublishedAndThenDeletedByKeep) {
  const SentShard first = send_first("a");
  ASSERT_OK(call("bb"));
  publish_next();
  PruneNotes notes;
  ASSERT_OK(remove_older_copies(checkpoint_.folder, {1}, notes));
  EXPECT_FALSE(notes.failure);
  ASSERT_FALSE(std::filesystem::exists(checkpoint_.path()));
  const auto again = call_again("a", first);
  ASSERT_OK(again);
  EXPECT_EQ(again->replaced_by, "step-2");
  EXPECT_FALSE(std::filesystem::exists(checkpoint_.shards())) << "it was sent again";
}

TEST_F(ReplacedCheckpoint, IsPublishedIfAnotherHostBeginsItAgain) {
  const SentShard first = send_first("a");
  publish_next();
  ASSERT_OK(call("bb"));
  const auto again = call_again("a", first);
  ASSERT_OK(again);
  EXPECT_TRUE(again->replaced_by.empty() && again->joined.is_published);
}

TEST_F(ReplacedCheckpoint, IsSentOnRequestAlthoughANewerOneWasPublishedBefore) {
  publish_next();
  std::filesystem::last_write_time(Destination{checkpoint_.folder, "step-2"}.manifest(),
                                   now_ - std::chrono::hours(1));
  const SentShard first = send_first("a");
  EXPECT_TRUE(first.replaced_by.empty());
  EXPECT_GT(first.shard_sent_ns, 0);
  std::filesystem::remove_all(checkpoint_.shards());  // by a person
  const auto again = call_again("a", first);
  ASSERT_OK(again);
  EXPECT_TRUE(again->replaced_by.empty());
  EXPECT_TRUE(std::filesystem::exists(checkpoint_.shards() / "a/config"));
}

}  // namespace
}  // namespace spark::staging
