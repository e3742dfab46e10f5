#include "staging/outputs/checkpoints.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>

#include "staging/copy/partial/removal.hpp"
#include "staging/files/tree.hpp"
#include "tests/support/failing_call.hpp"
#include "tests/support/skip.hpp"
#include "tests/unit/staging/outputs/checkpoints_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;
using testing::HasSubstr;

TEST_F(Checkpoints, UnderTheirFinalNamesAreCompleteTheHighestFirst) {
  file("step-1/model"), file("step-2/model"), file("model.safetensors");
  date("step-1", 20), date("step-2", 30), date("model.safetensors", 10);
  file("tmp-step-3/model"), file(".step-4/model"), file("step-5.tmp"), file("step-6.incomplete/model");
  std::filesystem::create_symlink("step-2", out_ / "latest");
  EXPECT_EQ(complete(Rule::Rename), (Names{"step-2", "step-1", "model.safetensors"}));
  EXPECT_EQ(settled(Rule::Rename)[0].bytes, 1u);
}

// After the clock was set back, times of the last hour are in the future.
TEST_F(Checkpoints, WithTimesInTheFutureAreCompleteOnceTheyStayedAsTheyAre) {
  file("step-1/model");
  const auto past = std::chrono::system_clock::now() - std::chrono::hours(1);
  const auto first = list_checkpoints(out_, {Rule::Rename, ""}, past, kSettled);
  ASSERT_OK(first);
  EXPECT_TRUE(first->front().is_in_future);
  EXPECT_TRUE(first->front().is_settling);
  const auto then =
      list_checkpoints(out_, {Rule::Rename, ""}, past, kSettled, {{"step-1", first->front().changed_ns}});
  ASSERT_OK(then);
  EXPECT_EQ(then->front().incomplete, "");
}

// Nothing tells an interrupted save to the same name then: what it has written looks older than the proof.
TEST_F(Checkpoints, StayUnprovenIfOnlyTheirProofIsInTheFuture) {
  file("step-1/model"), written(60 * 48, "step-1/DONE");
  auto listed = settled(Rule::Marker, "DONE");
  EXPECT_TRUE(listed[0].stays_unproven);
  EXPECT_FALSE(mark_unproven(listed, out_, {}, std::nullopt)) << "it is not flushed";
  EXPECT_TRUE(listed[0].is_unproven);
  EXPECT_THAT(listed[0].incomplete, HasSubstr("a clock was set: it may be the rest of an interrupted save"));
  const auto past = std::chrono::system_clock::now() - std::chrono::hours(1);
  EXPECT_FALSE(all({Rule::Marker, "DONE"}, past)[0].stays_unproven) << "all of it is";
}

// A clock that was set back during the save, or a copy without times.
TEST_F(Checkpoints, MayBeCompleteIfOnlyTheirTimesSayOtherwise) {
  written(1, "step-1/DONE"), written(2, "step-1/model"), file("step-2/model");
  const auto listed = settled(Rule::Marker, "DONE");
  EXPECT_FALSE(listed[0].is_unproven) << listed[0].name;
  EXPECT_TRUE(listed[1].is_unproven);
  EXPECT_FALSE(listed[1].stays_unproven) << "each look finds it again";
}

TEST_F(Checkpoints, FromBeforeTheStartOfTheHostAreUnprovenAlsoWhileTheySettle) {
  std::vector<Checkpoint> settling{
      {.name = "step-1", .changed_ns = 29, .incomplete = "it changed a moment ago", .is_settling = true}};
  EXPECT_FALSE(mark_unproven(settling, "/out", {}, 30));
  EXPECT_TRUE(settling[0].stays_unproven);
}

TEST_F(Checkpoints, WithALinkToNothingOrToSomethingOutsideAreNotComplete) {
  file("step-1/model"), file("step-1/part/a");
  std::filesystem::create_symlink("part/a", out_ / "step-1/inside");
  EXPECT_EQ(complete(Rule::Rename), Names{"step-1"});
  for (const char* target : {"gone", "../step-2/model", "/etc/hostname"}) {
    std::filesystem::create_symlink(target, out_ / "step-1/link");
    EXPECT_THAT(why_not(Rule::Rename, "step-1"), HasSubstr("step-1/link leads to nothing, or out of it"));
    std::filesystem::remove(out_ / "step-1/link");
  }
}

TEST_F(Checkpoints, OtherPermissionsAreNoWrite) {
  file("step-1/model");
  const auto before = settled(Rule::Rename)[0];
  std::filesystem::permissions(out_ / "step-1/model", std::filesystem::perms::owner_read);
  EXPECT_EQ(settled(Rule::Rename)[0].written, before.written);
}

// It would count as unproven after a restart of the host.
TEST_F(Checkpoints, ATouchOfAFolderIsNoWriteAndAFileThatIsAddedIsOne) {
  file("step-1/part/model");
  const auto before = settled(Rule::Rename)[0];
  for (const char* folder : {"step-1", "step-1/part"})
    std::filesystem::last_write_time(out_ / folder, std::filesystem::file_time_type::clock::now());
  EXPECT_EQ(settled(Rule::Rename)[0].written, before.written);
  std::filesystem::create_directory(out_ / "step-1/more");
  EXPECT_NE(settled(Rule::Rename)[0].written, before.written);
}

// As by a clock that was set back: the newest time stays the same.
TEST_F(Checkpoints, AFileThatIsWrittenAgainWithAnOlderTimeMakesAnotherState) {
  written(5, "step-1/model"), written(6, "step-1/DONE");
  const auto before = settled(Rule::Rename)[0];
  written(2, "step-1/model", "y");
  EXPECT_NE(settled(Rule::Rename)[0].written, before.written);
}

// A job that runs as root in a container, in a user's folder.
TEST_F(Checkpoints, ThatCannotBeReadMayBeComplete) {
  file("step-1/model");
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  std::filesystem::permissions(out_ / "step-1/model", std::filesystem::perms::none);
  EXPECT_TRUE(as_nobody([&] {
    return why_not(Rule::Rename, "step-1").find("can't be read by the owner") != std::string::npos &&
           settled(Rule::Rename)[0].is_unproven;
  }));
}

TEST_F(Checkpoints, OfAnotherUserStayAsTheyAreAndKeepNoOtherFromRemoval) {
  if (::geteuid() != 0) SPARK_SKIP("only root can make files of other users");
  file("step-1/part/model"), file("step-2/model"), file("step-3/part/model");
  file(".step-0.spark-removed/model");
  mark_rest(out_ / ".step-0.spark-removed", ".spark-removed");  // the rest of a removal that failed
  for (const char* nobodys : {"", "step-2", "step-2/model", "step-3", "step-3/part", "step-3/part/model"})
    ASSERT_EQ(::chown((out_ / nobodys).c_str(), 65534, 65534), 0);
  std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  const auto states = seen({"step-1", "step-2", "step-3"});
  EXPECT_TRUE(as_nobody([&] {
    const auto all = remove(states);
    return !all && all.error().kind == Errc::Denied && removed_ == Names{"step-2", "step-3"};
  }));
  EXPECT_EQ(read_text(out_ / "step-1/part/model"), "x") << "under its name, for the job";
  EXPECT_FALSE(std::filesystem::exists(out_ / "step-2"));
}

TEST_F(Checkpoints, WithANameForAnotherRuleAreTold) {
  file("step_500/model"), file("logs/run_3"), file("version_0/metrics");
  EXPECT_EQ(misnamed_folder(out_, Rule::HuggingFace), "step_500");
  EXPECT_EQ(misnamed_folder(out_, Rule::Rename), "");
}

// Rotation that was killed: a checkpoint that lacks its weights would replace the good copy.
TEST_F(Checkpoints, ARecentlyChangedCheckpointIsNotComplete) {
  file("step-1/model");
  const auto now = all({Rule::Rename, ""}, std::chrono::system_clock::now());
  ASSERT_EQ(now.size(), 1u);
  EXPECT_EQ(now[0].incomplete, "it changed a moment ago");
  EXPECT_TRUE(now[0].is_settling);
  date("step-1", 100);  // a rename or a restored file has old times, so the change itself counts
  EXPECT_FALSE(all({Rule::Rename, ""}, std::chrono::system_clock::now())[0].incomplete.empty());
}

TEST_F(Checkpoints, FromBeforeTheStartOfTheHostAreUnprovenUnlessKnownToHaveBeenOnTheDrive) {
  std::vector<Checkpoint> checkpoints{{.name = "new", .changed_ns = 31, .incomplete = ""},
                                      {.name = "saved-again", .changed_ns = 21, .incomplete = ""},
                                      {.name = "known", .changed_ns = 11, .incomplete = ""},
                                      {.name = "unfinished", .changed_ns = 5, .incomplete = "no DONE"}};
  const std::map<std::string, std::int64_t> known{{"saved-again", 20}, {"known", 11}};
  EXPECT_TRUE(mark_unproven(checkpoints, "/out", known, 30)) << "the new one is not on the drive yet";
  std::string unproven;
  for (const Checkpoint& one : checkpoints)
    unproven += one.is_unproven ? one.name + ": " + one.incomplete : "";
  EXPECT_THAT(unproven, testing::StartsWith("saved-again: it is older than this host's last start"));
  EXPECT_THAT(unproven, HasSubstr("`spark-stage stage-out /out/saved-again VOLUME:PATH`"));
  EXPECT_EQ(checkpoints.back().incomplete, "no DONE");
  EXPECT_FALSE(mark_unproven(checkpoints, "/out", {{"new", 31}, {"known", 11}}, 30));
}

TEST_F(Checkpoints, UndatedAreUnprovenUnlessKnownToHaveBeenOnTheDrive) {
  std::vector<Checkpoint> checkpoints{{.name = "known", .changed_ns = 41, .incomplete = ""},
                                      {.name = "saved-again", .changed_ns = 42, .incomplete = ""},
                                      {.name = "torn", .changed_ns = 43, .incomplete = ""}};
  const std::map<std::string, std::int64_t> unproven{{"known", 41}, {"saved-again", 40}, {"torn", 43}};
  EXPECT_TRUE(mark_unproven(checkpoints, "/out", {{"known", 41}}, 30, unproven));
  EXPECT_FALSE(checkpoints[0].is_unproven);
  EXPECT_FALSE(checkpoints[1].is_unproven);
  EXPECT_TRUE(checkpoints[2].is_unproven);
  EXPECT_THAT(checkpoints[2].incomplete, testing::StartsWith("a clock was set: it may be the rest"));
}

// A job that is killed while it saves leaves one below the number of its next save, which `latest` names.
TEST_F(Checkpoints, AreRemovedTogetherWithLeftoversOfAnEarlierRemoval) {
  file("step-1/model"), file("step-2/model"), file(".step-0.spark-removed/model"), file(".keep/model");
  mark_rest(out_ / ".step-0.spark-removed", ".spark-removed");
  ASSERT_OK(remove(seen({"step-1", "gone", "../out/step-2", ".keep"})));
  EXPECT_FALSE(std::filesystem::exists(out_ / "step-1"));
  EXPECT_FALSE(std::filesystem::exists(out_ / ".step-0.spark-removed"));
  EXPECT_TRUE(std::filesystem::exists(out_ / "step-2/model"));
  EXPECT_TRUE(std::filesystem::exists(out_ / ".keep/model"));
}

// A job may have it open all the same.
TEST_F(Checkpoints, OneThatTheDriveDoesNotShowIsNotRemoved) {
  file("step-1/model");
  const auto removes = [&] {
    static constexpr int kCalls[] = {SYS_openat};
    const auto states = seen({"step-1"});
    const auto fail_it = [](const spark::test::FileCall& call) -> std::optional<long> {
      const bool is_it = std::string_view(reinterpret_cast<const char*>(call.arguments[1])) == "model";
      return is_it ? std::optional<long>(-EIO) : std::nullopt;
    };
    if (!spark::test::intercept_calls(kCalls, fail_it).empty()) return 10;
    return remove(states) ? 1 : 0;
  };
  EXPECT_EQ(run_and_kill(removes, std::chrono::seconds(60)), 0);
  EXPECT_TRUE(std::filesystem::exists(out_ / "step-1/model"));
}

// In a folder without the sticky bit others rename what they may not delete.
TEST_F(Checkpoints, WhatOthersGaveTheNameOfARemovalOrOfACheckpointIsNotRemoved) {
  file("step-1/model"), file("thesis/chapter"), file(".step-0.spark-removed/chapter");
  const auto states = seen({"step-1"});
  ASSERT_FALSE(remove_checkpoints(out_, states, {}, [&](const std::string&) {
    std::filesystem::rename(out_ / "step-1", out_ / "aside");
    std::filesystem::rename(out_ / "thesis", out_ / "step-1");
  }));
  EXPECT_EQ(read_text(out_ / ".step-0.spark-removed/chapter"), "x");
  EXPECT_EQ(read_text(out_ / "step-1/chapter"), "x");
  EXPECT_EQ(read_text(out_ / "aside/model"), "x");
}

// A mark is easily made by a hard link to a file of this user, or is a file that got the name.
TEST_F(Checkpoints, AForgedMarkOfARemovalHasNothingRemoved) {
  namespace fs = std::filesystem;
  const std::string end = ".spark-removed";
  for (const char* name : {".open", ".linked", ".written", ".readable", ".proven"}) {
    file(name + end + "/private/chapter");
    mark_rest(out_ / (name + end), end);
  }
  fs::permissions(out_ / (".open" + end), fs::perms(0770));
  fs::create_hard_link(out_ / (".linked" + end) / end, out_ / "notes");
  write_text(out_ / (".written" + end) / end, "notes");
  fs::permissions(out_ / (".readable" + end) / end, fs::perms(0664));
  const auto removed = remove({});
  ASSERT_FALSE(removed);
  EXPECT_THAT(removed.error().what, testing::HasSubstr("has no mark of spark-stage"));
  for (const char* name : {".open", ".linked", ".written", ".readable"})
    EXPECT_EQ(read_text(out_ / (name + end) / "private/chapter"), "x") << name;
  EXPECT_FALSE(fs::exists(out_ / (".proven" + end)));
}

// A file as well as a folder.
TEST_F(Checkpoints, AnInterruptedRemovalIsFinishedByTheNext) {
  file("step-1.pt"), file("step-2.pt"), file("step-3/model");
  for (const char* name : {"step-1.pt", "step-3"}) {
    const auto checked = identity_of(out_ / name);
    ASSERT_OK(checked);
    EXPECT_KIND(rename_for_removal(out_, "step-2.pt", *checked), Errc::Refused);
    ASSERT_OK(rename_for_removal(out_, name, *checked));
    EXPECT_FALSE(std::filesystem::exists(out_ / name));
    EXPECT_EQ(names_of(out_)->size(), name == std::string("step-1.pt") ? 3U : 2U) << "all of it is left";
    ASSERT_OK(finish_removals(out_));
  }
  EXPECT_EQ(names_of(out_).value(), Names{"step-2.pt"});
}

// A job saves a checkpoint again, or another host publishes it again, in good faith.
TEST_F(Checkpoints, OneThatGetsTheNameDuringARemovalKeepsIt) {
  const auto replaced_after = [&](const std::string& last) {
    return [this, last](const char* step) -> Result<> {
      if (last != step) return {};
      std::error_code error;
      std::filesystem::rename(out_ / "step-1", out_ / "aside", error);  // it may be away already
      file("new");
      std::filesystem::rename(out_ / "new", out_ / "step-1");
      return {};
    };
  };
  for (const bool is_folder : {false, true}) {
    file(is_folder ? "step-1/model" : "step-1");
    const auto checked = identity_of(out_ / "step-1");
    ASSERT_OK(checked);
    EXPECT_KIND(rename_for_removal(out_, "step-1", *checked, replaced_after("checked")), Errc::Refused);
    EXPECT_EQ(read_text(out_ / "step-1"), "x");
    EXPECT_EQ(names_of(out_)->size(), 2U) << "and nothing hidden";
    std::filesystem::remove(out_ / "step-1");
    std::filesystem::rename(out_ / "aside", out_ / "step-1");
    auto away = rename_for_removal(out_, "step-1", *checked, replaced_after("moved"));
    ASSERT_OK(away);
    ASSERT_OK(staging::remove(std::move(*away)));
    EXPECT_EQ(names_of(out_).value(), Names{"step-1"});
    EXPECT_EQ(read_text(out_ / "step-1"), "x");
    std::filesystem::remove(out_ / "step-1");
  }
}

// The process is killed after it moved the wrong one, before it could move it back.
TEST_F(Checkpoints, AnotherOneInTheRestOfARemovalIsKeptAndNamed) {
  namespace fs = std::filesystem;
  file("step-1/model"), file("step-2.pt");
  const auto checked = identity_of(out_ / "step-1");
  ASSERT_OK(checked);
  const auto away = rename_for_removal(out_, "step-1", *checked);
  ASSERT_OK(away);
  const fs::path inside = fs::directory_iterator((*away)->path())->path().filename() == ".spark-inside"
                              ? std::next(fs::directory_iterator((*away)->path()))->path()
                              : fs::directory_iterator((*away)->path())->path();
  fs::rename(inside, out_ / "aside");
  fs::rename(out_ / "step-2.pt", inside);
  std::vector<std::string> unproven;
  ASSERT_OK(finish_removals(out_, &unproven));
  EXPECT_EQ(read_text(inside), "x");
  ASSERT_EQ(unproven.size(), 1U);
  EXPECT_THAT(unproven[0], testing::HasSubstr((*away)->path().filename().native()));
}

TEST_F(Checkpoints, ACheckpointBeingCopiedIsNotRemoved) {
  for (const char* name : {"whole", "in-part", "near", "free"}) file(std::string(name) + "/model");
  std::filesystem::create_directory_symlink(out_, folder_ / "link");
  ASSERT_OK(remove(seen({"whole", "in-part", "near", "free"}),
                   {folder_ / "link/whole", out_ / "in-part/model", out_ / "nea", "/elsewhere"}));
  EXPECT_TRUE(std::filesystem::exists(out_ / "whole/model")) << "its path leads through a link";
  EXPECT_TRUE(std::filesystem::exists(out_ / "in-part/model"));
  EXPECT_FALSE(std::filesystem::exists(out_ / "near"));
  EXPECT_FALSE(std::filesystem::exists(out_ / "free"));
  file("step-1/model");
  ASSERT_OK(remove(seen({"step-1"}), {out_.native() + "/"}));
  EXPECT_TRUE(std::filesystem::exists(out_ / "step-1/model")) << "the copy is of the whole folder";
}

TEST_F(Checkpoints, ACheckpointThatAJobIsLoadingIsNotRemoved) {
  file("step-1/part/model"), file("step-2.pt"), file("step-3/model");
  const auto states = seen({"step-1", "step-2.pt", "step-3"});
  {
    const std::ifstream one(out_ / "step-1/part/model"), two(out_ / "step-2.pt");
    ASSERT_OK(remove(states));
    EXPECT_EQ(removed_, Names{"step-3"});
  }
  ASSERT_OK(remove(states));
  EXPECT_EQ(removed_.size(), 2u);
}

TEST_F(Checkpoints, ACheckpointSavedAgainSinceItWasListedIsNotRemoved) {
  file("step-1/model"), file("step-2/part/model"), file("step-3/model");
  auto before = seen({"step-1", "step-2", "step-3"});
  --before["step-1"];
  date("step-2/part/model", 50);  // its change counts, not the time that it was given
  while (seen({"step-2"})["step-2"] == before["step-2"]) date("step-2/part/model", 50);
  ASSERT_OK(remove(before));
  EXPECT_TRUE(std::filesystem::exists(out_ / "step-1/model"));
  EXPECT_TRUE(std::filesystem::exists(out_ / "step-2/part/model"));
  EXPECT_FALSE(std::filesystem::exists(out_ / "step-3"));
}

TEST_F(Checkpoints, ACheckpointIsRemovedDespiteRemainsOfTheSameName) {
  file(".step-1.spark-removed/model"), file("step-1/model");
  mark_rest(out_ / ".step-1.spark-removed", ".spark-removed");
  ASSERT_OK(remove(seen({"step-1"})));
  EXPECT_FALSE(std::filesystem::exists(out_ / ".step-1.spark-removed"));
  EXPECT_FALSE(std::filesystem::exists(out_ / "step-1"));
}

// Editors, locks and evaluators come and go.
TEST_F(Checkpoints, HaveTheFilesOfTheirSaveWithoutTemporaryOnes) {
  file("step-1/part/model"), file("step-1/.metadata");
  const auto before = settled(Rule::Rename)[0];
  EXPECT_EQ(before.file_count, 2u);
  EXPECT_EQ(before.files.size(), 2u);
  file("step-1/.eval.lock"), file("step-1/results.json.tmp"), file("step-1/model.lock"),
      file("step-1/.cache/x");
  EXPECT_EQ(settled(Rule::Rename)[0].files, before.files);
  file("step-1/results.json");
  std::filesystem::remove(out_ / "step-1/part/model");
  const auto after = settled(Rule::Rename)[0];
  EXPECT_EQ(after.file_count, before.file_count);
  EXPECT_NE(after.files, before.files);
}

}  // namespace
}  // namespace spark::staging
