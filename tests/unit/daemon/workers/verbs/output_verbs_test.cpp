#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "tests/support/skip.hpp"
#include "tests/unit/daemon/workers/verbs/stage_out_fixture.hpp"

namespace spark::workers {
namespace {

using namespace staging::test;
using testing::HasSubstr;
using testing::Not;

TEST_F(StageOutVerb, ACopyIsReadAndWrittenWithTheRightsOfItsSender) {
  if (::geteuid() != 0) SPARK_SKIP("only root can become another user");
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  const auto closed_source = folder_ / "closed";
  write_text(closed_source / "shard", "secret");
  ASSERT_EQ(::chmod(closed_source.c_str(), 0700), 0);
  std::filesystem::create_directories(run_);
  const auto kind_of = [&](const std::filesystem::path& source) {
    return run_and_kill(
        [&] {
          json::object asked = request();
          asked["uid"] = 65534;
          asked["source"] = source.native();
          const auto sent = stage_out(asked, kNoProgress);
          return sent ? 0 : sent.error().kind == Errc::Denied ? 2 : 1;
        },
        std::chrono::seconds(60));
  };
  EXPECT_EQ(kind_of(source_), 2) << "its folder on the volume is root's";
  ASSERT_EQ(::chown(run_.c_str(), 65534, 65534), 0);
  EXPECT_EQ(kind_of(closed_source), 2);
  EXPECT_FALSE(std::filesystem::exists(run_ / "step-1"));
  EXPECT_EQ(kind_of(source_), 0);
  struct stat info {};
  ASSERT_EQ(::stat((run_ / "step-1/shard").c_str(), &info), 0);
  EXPECT_EQ(info.st_uid, 65534u);
}

// Anybody who may write beside the copy could forge its manifest, and have the answer list the folder.
TEST_F(StageOutVerb, AVerificationTellsAUserNothingOfAClosedFolder) {
  if (::geteuid() != 0) SPARK_SKIP("only root can become another user");
  ASSERT_TRUE(stage_out(request(), kNoProgress));
  write_text(run_ / "step-1/private-name", "x");
  for (const auto& path : {folder_.path(), run_}) ASSERT_EQ(::chmod(path.c_str(), 0755), 0);
  ASSERT_EQ(::chmod((run_ / "step-1").c_str(), 0700), 0);
  ASSERT_EQ(::chmod((run_ / ".step-1.spark-manifest").c_str(), 0644), 0);
  std::filesystem::create_symlink(run_ / "step-1", run_ / "link");
  const auto answer_to = [&](const json::object& asked) {
    const auto verified = verify_output_verb(asked, kNoProgress);
    return verified ? json::serialize(*verified) : verified.error().message();
  };
  const auto as_user = [&] {
    json::object asked = request();
    asked["uid"] = 65534;
    const std::string folder = answer_to(asked);
    const auto behind_link = [&](const std::string& name) {
      asked["path"] = "run/link/" + name;
      std::string said = answer_to(asked);
      for (std::size_t at = 0; (at = said.find(name, at)) != std::string::npos;) said.erase(at, name.size());
      return said;
    };
    const bool tells = folder.find("private-name") != std::string::npos ||
                       behind_link("private-name") != behind_link("nothing");
    return tells ? 1 : 0;
  };
  EXPECT_EQ(run_and_kill(as_user, std::chrono::seconds(60)), 0);
  json::object asked = request();
  asked.erase("uid");
  EXPECT_THAT(answer_to(asked), HasSubstr("private-name")) << "root learns it";
}

TEST_F(StageOutVerb, ACopyOfAnotherSourceIsReplacedOnlyIfThatIsAccepted) {
  std::string log;
  const auto send = [&](const std::string& source, const std::string& content, bool accepts = false,
                        const char* rule = "") {
    write_text(folder_ / source / "shard", content);
    json::object asked = request();
    asked["source"] = (folder_ / source).native();
    asked["accept_source"] = accepts;
    asked["rule"] = rule;
    const auto sent = stage_out(asked, [&](const json::object& said) {
      if (const auto what = get_string(said, "deletes"))
        log += *what + ": " + get_string(said, "because").value_or("") + "\n";
    });
    return sent ? std::string("sent") : to_string(sent.error().kind);
  };
  const auto published = [&] { return read_text(run_ / "step-1/shard"); };
  EXPECT_EQ(send("job-41/out", "first"), "sent");
  EXPECT_EQ(send("job-41/out", "second"), "sent");
  EXPECT_EQ(send("job-42/out", "third"), "sent") << "a job's folder has another number each time";
  EXPECT_EQ(published(), "third");
  EXPECT_EQ(log, "the copy of " + (folder_ / "job-41/out").native() + ": a copy of " +
                     (folder_ / "job-42/out").native() + " replaces it\n");
  EXPECT_EQ(send("job-42/extra", "fourth"), "refused");
  EXPECT_EQ(send("other/out", "fourth"), "refused");
  EXPECT_EQ(published(), "third");
  EXPECT_EQ(send("other/out", "fourth", true), "sent");
  EXPECT_EQ(published(), "fourth");
  EXPECT_EQ(send("output/step-1", "fifth", false, "rename"), "sent") << "an output owns its names";
  std::filesystem::create_symlink(folder_ / "output/step-1", folder_ / "same");
  write_text(folder_ / "output/step-1/shard", "sixth");
  json::object asked = request();
  asked["source"] = (folder_ / "same").native();
  EXPECT_TRUE(stage_out(asked, kNoProgress)) << "another path of the same source";
  EXPECT_EQ(published(), "sixth");
}

// A retry could publish, or replace, while or after the other host does.
TEST_F(StageOutVerb, ACopyWhoseLockAnotherHostTookOverFailsForGood) {
  const auto lock = run_ / ".step-1.spark-partial/lock";
  const auto sent = stage_out(request(), [&](const json::object&) {
    if (std::filesystem::exists(lock)) write_text(lock, "beta\nits-boot\n");
  });
  ASSERT_TRUE(sent) << sent.error().message();
  EXPECT_EQ(get_string(*sent, "state"), "failed");
  const json::object* error = get_object(*sent, "error");
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(get_string(*error, "kind"), "unavailable");
  EXPECT_THAT(get_string(*error, "what").value_or(""), HasSubstr("taken over by host beta"));
  EXPECT_FALSE(std::filesystem::exists(run_ / "step-1"));
}

TEST_F(StageOutVerb, AShardWhoseCheckpointWasReplacedFailsForGoodAndNamesTheNewerOne) {
  json::object sharded = request();
  sharded["nodes"] = 2;
  sharded["shard_sent_ns"] = 0;
  const auto first = stage_out(sharded, kNoProgress);
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_EQ(get_string(*first, "state"), "waiting");
  sharded["shard_sent_ns"] = first->at("shard_sent_ns");
  std::filesystem::remove_all(run_ / ".step-1.spark-shards");
  json::object newer = request();
  newer["path"] = "run/step-2";
  ASSERT_TRUE(stage_out(newer, kNoProgress));
  const auto again = stage_out(sharded, kNoProgress);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(get_string(*again, "state"), "failed");
  const json::object* error = get_object(*again, "error");
  ASSERT_NE(error, nullptr);
  EXPECT_EQ(get_string(*error, "kind"), "failed");
  EXPECT_THAT(get_string(*error, "what").value_or(""), HasSubstr("step-2 replaced it before all hosts"));
}

TEST_F(StageOutVerb, ASourceThatChangedSinceItWasFoundCompleteIsNotSent) {
  json::object of_output = request();
  of_output["rule"] = "rename";
  of_output["source"] = (folder_ / "step-1").native();
  std::filesystem::rename(source_, folder_ / "step-1");
  of_output["written"] = 1;
  const auto refused = stage_out(of_output, kNoProgress);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::Mismatch) << refused.error().message();
  EXPECT_FALSE(std::filesystem::exists(run_ / "step-1"));
  of_output.erase("written");
  const auto sent = stage_out(of_output, kNoProgress);
  ASSERT_TRUE(sent) << sent.error().message();
  EXPECT_TRUE(std::filesystem::exists(run_ / "latest/shard"));
}

// A rotation that was killed leaves such a folder under its final name.
TEST_F(StageOutVerb, ASourceThatHasLostFilesSinceItWasSentReplacesNothing) {
  json::object of_output = request();
  of_output["rule"] = "rename";
  write_text(source_ / "optimizer", "x");
  ASSERT_TRUE(stage_out(of_output, kNoProgress));
  std::filesystem::remove(source_ / "shard");
  const auto refused = stage_out(of_output, kNoProgress);
  ASSERT_TRUE(refused) << refused.error().message();
  EXPECT_EQ(get_string(*refused, "state"), "failed");
  EXPECT_THAT(json::serialize(*refused), HasSubstr("has lost shard since it was sent"));
  EXPECT_TRUE(std::filesystem::exists(run_ / "step-1/shard"));
  std::filesystem::rename(source_, folder_ / "aside");  // saved again, by a rename
  write_text(source_ / "optimizer", "y");
  EXPECT_EQ(get_string(*stage_out(of_output, kNoProgress), "state"), "ready");
}

TEST_F(StageOutVerb, ALinkThatLeadsToNothingIsRefused) {
  std::filesystem::create_symlink("gone", source_ / "link");
  const auto refused = stage_out(request(), kNoProgress);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Errc::Refused);
}

// The folder is held open meanwhile, and has a name of its own then.
TEST_F(StageOutVerb, TheAnswerHasThePathOfTheCopyOnTheVolume) {
  const auto sent = stage_out(request(), kNoProgress);
  ASSERT_TRUE(sent) << sent.error().message();
  EXPECT_EQ(get_text(*sent, "path"), (std::filesystem::canonical(run_) / "step-1").native());
}

TEST_F(StageOutVerb, MegatronsTrackerIsBesideItsCheckpoints) {
  json::object of_output = request();
  of_output["rule"] = "rename";
  of_output["path"] = "run/iter_0000100";
  of_output["source"] = (folder_ / "iter_0000100").native();
  std::filesystem::rename(source_, folder_ / "iter_0000100");
  ASSERT_TRUE(stage_out(of_output, kNoProgress));
  EXPECT_EQ(read_file(run_ / "latest_checkpointed_iteration.txt").value(), "100");
}

// Sends two checkpoints of one output, and deletes older ones.
class PruneOutputVerb : public StageOutVerb {
 protected:
  void SetUp() override { std::filesystem::rename(source_, folder_ / names_[0]); }
  json::object send(const std::string& name) {
    json::object of_output = request();
    of_output["rule"] = "rename";
    of_output["source"] = (folder_ / name).native();
    of_output["path"] = "run/" + name;
    const auto sent = stage_out(of_output, [&](const json::object& progress) {
      is_told_ = get_bool(progress, "published").value_or(false) || is_told_;
    });
    EXPECT_TRUE(sent) << sent.error().message();
    return sent ? *sent : json::object();
  }
  // Returns what was deleted.
  std::string prune() {
    json::object of_output = request();
    of_output["rule"] = "rename";
    of_output["path"] = "run/" + names_[1];
    of_output["keep"] = 1;
    const auto pruned = prune_output_verb(of_output, kNoProgress);
    EXPECT_TRUE(pruned) << pruned.error().message();
    return pruned ? json::serialize(pruned->at("removed")) : "";
  }
  // `make` is called between the two.
  std::string warnings_of_second(const std::function<void()>& make) {
    send(names_[0]);
    make();
    std::filesystem::rename(folder_ / names_[0], folder_ / names_[1]);
    is_told_ = false;
    const json::object sent = send(names_[1]);
    EXPECT_TRUE(is_told_);
    return json::serialize(sent.at("warnings"));
  }
  // Whatever another user who may create files in the folder has made there.
  void expect_no_effect_of(const std::function<void()>& make) {
    EXPECT_THAT(warnings_of_second(make), Not(HasSubstr("is not moved")));
    EXPECT_EQ(prune(), R"(["step-1"])");
    EXPECT_EQ(std::filesystem::read_symlink(run_ / "latest"), "step-2");
    EXPECT_TRUE(std::filesystem::exists(run_ / "latest/shard"));
  }
  void give_away(const std::filesystem::path& path) const {
    ASSERT_EQ(::lchown(path.c_str(), 65534, 65534), 0);
  }

  std::vector<std::string> names_ = {"step-1", "step-2"};
  bool is_told_ = false;
};

TEST_F(PruneOutputVerb, ACheckpointCountsAlthoughThePointerStaysAndWhereThatLeadsIsNotDeleted) {
  const std::string warnings = warnings_of_second([&] {
    std::filesystem::create_directory(run_ / "step-999");
    write_text(run_ / ".step-999.spark-manifest", "cut");
  });
  EXPECT_THAT(warnings, HasSubstr("step-999"));
  EXPECT_EQ(prune(), "[]");
  EXPECT_TRUE(std::filesystem::exists(run_ / "latest/shard")) << "it leads to step-1";
  std::filesystem::remove(run_ / ".step-999.spark-manifest");
  EXPECT_EQ(prune(), R"(["step-1"])");
  EXPECT_EQ(std::filesystem::read_symlink(run_ / "latest"), "step-2");
}

TEST_F(PruneOutputVerb, AFolderInThePlaceOfMegatronsTrackerHasNothingDeletedThatLatestLeadsTo) {
  std::filesystem::rename(folder_ / "step-1", folder_ / "iter_0000001");
  names_ = {"iter_0000001", "iter_0000002"};
  const std::string warnings = warnings_of_second([&] {
    std::filesystem::remove(run_ / "latest_checkpointed_iteration.txt");
    std::filesystem::create_directory(run_ / "latest_checkpointed_iteration.txt");
  });
  EXPECT_THAT(warnings, HasSubstr("latest_checkpointed_iteration.txt"));
  EXPECT_EQ(prune(), "[]");
  EXPECT_TRUE(std::filesystem::exists(run_ / "latest/shard"));
}

TEST_F(PruneOutputVerb, AReplacementThatAnotherUserFakesKeepsNoPointer) {
  if (::geteuid() != 0) SPARK_SKIP("needs root");
  expect_no_effect_of([&] {
    std::filesystem::create_directories(run_ / ".step-999.spark-partial/replaced");
    give_away(run_ / ".step-999.spark-partial");
  });
}

TEST_F(PruneOutputVerb, AManifestOfAnotherUserThatCannotBeReadKeepsNoPointer) {
  if (::geteuid() != 0) SPARK_SKIP("needs root");
  expect_no_effect_of([&] {
    for (const char* name : {"step-998", "step-999"}) {
      std::filesystem::create_directory(run_ / name);
      give_away(run_ / name);
    }
    write_text(run_ / ".step-999.spark-manifest", "cut");
    give_away(run_ / ".step-999.spark-manifest");
    write_text(run_ / ".step-998.spark-partial/manifest", "cut");
    give_away(run_ / ".step-998.spark-partial");
    give_away(run_ / ".step-998.spark-partial/manifest");
  });
}

TEST_F(PruneOutputVerb, AFolderUnderAHiddenNameKeepsNoPointer) {
  expect_no_effect_of([&] { write_text(run_ / ".latest.spark-new/x", "in the way"); });
  EXPECT_TRUE(std::filesystem::exists(run_ / ".latest.spark-new/x"));
}

TEST_F(StageOutVerb, MultiplesOfKeepEveryStayOnTheVolumeBesideTheNewestCopies) {
  json::object sent = request();
  auto saved = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (const int step : {9, 10, 11, 12, 20, 21}) {
    std::filesystem::last_write_time(source_, saved += std::chrono::seconds(10));
    sent["path"] = "run/step-" + std::to_string(step);
    ASSERT_TRUE(stage_out(sent, kNoProgress));
  }
  sent["keep"] = 1;
  sent["keep_every"] = 10;
  sent["spared"] = json::array{"step-12"};
  const auto pruned = prune_output_verb(sent, kNoProgress);
  ASSERT_TRUE(pruned) << pruned.error().message();
  EXPECT_EQ(json::serialize(pruned->at("removed")), R"(["step-11","step-9"])");
  for (const char* kept : {"step-10", "step-12", "step-20", "step-21"}) {
    EXPECT_TRUE(std::filesystem::exists(run_ / kept)) << kept;
  }
}

// An earlier version made no marks, and umask 002 lets the group rename.
TEST_F(StageOutVerb, WhatStaysForWantOfProofIsAWarningOfTheSendAndOfTheDeletion) {
  write_text(run_ / ".step-0.spark-partial/data/shard", "half");
  write_text(run_ / ".a.spark-removed/shard", "rest");
  ASSERT_EQ(::chmod(run_.c_str(), 0775), 0);
  json::object asked = request();
  asked["rule"] = "rename";
  const auto sent = stage_out(asked, kNoProgress);
  ASSERT_OK(sent);
  EXPECT_THAT(json::serialize(sent->at("warnings")), HasSubstr("run/.step-0.spark-partial: it is open to"));
  asked["keep"] = 1;
  const auto pruned = prune_output_verb(asked, kNoProgress);
  ASSERT_OK(pruned);
  EXPECT_THAT(json::serialize(pruned->at("warnings")), HasSubstr("run/.a.spark-removed: it is open to"));
  EXPECT_EQ(read_text(run_ / ".step-0.spark-partial/data/shard"), "half");
  EXPECT_EQ(read_text(run_ / ".a.spark-removed/shard"), "rest");
}

TEST(RecordedVerb, ARecordThatCannotBeReadIsNamedWithTheReason) {
  const TempFolder folder;
  std::ofstream(folder / "run7.json") << R"({"flushed": {}})";
  std::ofstream(folder / "run8.json") << "cut sh";
  std::filesystem::create_directory(folder / "run9.json");  // a read error, also for root
  const auto answer = recorded_verb({{"folder", folder.path().native()}}, kNoProgress);
  ASSERT_TRUE(answer) << answer.error().message();
  std::map<std::string, bool> is_read;
  for (const json::value& row : answer->at("records").as_array()) {
    const json::object& record = row.as_object();
    EXPECT_NE(record.contains("content"), record.contains("error"));
    is_read[std::filesystem::path(*get_string(record, "file")).filename()] = record.contains("content");
  }
  EXPECT_EQ(is_read,
            (std::map<std::string, bool>{{"run7.json", true}, {"run8.json", false}, {"run9.json", false}}));
}

TEST(RecordedVerb, AMissingFolderHasNoRecords) {
  const auto answer = recorded_verb({{"folder", "/no/such/folder"}}, kNoProgress);
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_TRUE(answer->at("records").as_array().empty());
}

}  // namespace
}  // namespace spark::workers
