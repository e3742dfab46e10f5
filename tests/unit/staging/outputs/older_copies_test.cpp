// Which copies `keep` deletes.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <optional>
#include <string_view>

#include "base/file.hpp"
#include "tests/support/failing_call.hpp"
#include "tests/support/skip.hpp"
#include "tests/unit/staging/outputs/published_copies_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

TEST_F(PublishedCopies, KeepLeavesNothingOfACopyWhosePublishingWasInterrupted) {
  send("step-1");
  send_until("flush", "step-1");
  send("step-2");
  const auto removed = remove_older_copies(volume_, {1});
  ASSERT_OK(removed);
  ASSERT_EQ(removed->size(), 1u);
  EXPECT_EQ(removed->front().name, "step-1");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(volume_), {}), 2) << "step-2 and its manifest";
}

TEST_F(PublishedCopies, KeepDeletesTheOldestWithItsManifestAndNothingElse) {
  for (const char* name : {"step-1", "step-2", "step-3"}) send(name);
  std::filesystem::create_directories(volume_ / "by-hand");
  const auto removed = remove_older_copies(volume_, {2});
  ASSERT_OK(removed);
  ASSERT_EQ(removed->size(), 1u);
  EXPECT_EQ(removed->front().name, "step-1");
  EXPECT_EQ(names(), (Names{"step-3", "step-2"}));
  EXPECT_FALSE(std::filesystem::exists(volume_ / ".step-1.spark-manifest"));
  EXPECT_TRUE(std::filesystem::exists(volume_ / "by-hand"));
}

TEST_F(PublishedCopies, KeepSparesTheCopyJustSentRegardlessOfItsAge) {
  for (const char* name : {"step-1", "step-2", "step-3"}) send(name);
  ASSERT_OK(remove_older_copies(volume_, {1, 0, {"step-1"}}));
  EXPECT_EQ(names(), (Names{"step-3", "step-1"}));
}

// The time of an old checkpoint changes with each file that is added to it, or the clock was set back.
TEST_F(PublishedCopies, KeepGoesByTheStepWhateverTheTimes) {
  for (const char* name : {"step-1000", "step-500"}) send(name);
  ASSERT_OK(remove_older_copies(volume_, {1}));
  EXPECT_EQ(names(), Names{"step-1000"});
}

TEST_F(PublishedCopies, KeepCountsEachSeriesOfNamesSeparately) {
  for (const char* name : {"G_100.pth", "D_100.pth", "G_200.pth", "D_200.pth", "e=1-step=200.ckpt",
                           "e=2-step=300.ckpt", "e=2-step=300-v1.ckpt", "fold_0", "fold_1"})
    send(name);
  ASSERT_OK(remove_older_copies(volume_, {1}));
  EXPECT_THAT(names(), testing::UnorderedElementsAre("G_200.pth", "D_200.pth", "e=2-step=300.ckpt",
                                                     "e=2-step=300-v1.ckpt", "fold_0", "fold_1"));
}

TEST_F(PublishedCopies, KeepCountsEachSaveOfOneEpoch) {
  for (const char* name : {"checkpoint_1_100.pt", "checkpoint_1_200.pt", "epoch=1-step=3.ckpt",
                           "epoch=1-step=3-v1.ckpt", "fold_0_epoch_9.pt", "fold_1_epoch_10.pt"})
    send(name);
  ASSERT_OK(remove_older_copies(volume_, {1}));
  auto left = names();
  std::ranges::sort(left);
  EXPECT_EQ(left, (Names{"checkpoint_1_200.pt", "epoch=1-step=3-v1.ckpt", "epoch=1-step=3.ckpt",
                         "fold_0_epoch_9.pt", "fold_1_epoch_10.pt"}));
}

TEST_F(PublishedCopies, KeepCountsThoseWithAndWithoutAStepSeparately) {
  for (const char* name : {"step-1", "final", "export", "step-2"}) send(name);
  ASSERT_OK(remove_older_copies(volume_, {1}));
  EXPECT_EQ(names(), (Names{"step-2", "export"}));
}

TEST_F(PublishedCopies, KeepDeletesNothingUnlessAHigherOneIsWhole) {
  for (const char* name : {"step-1", "step-2", "step-3"}) send(name);
  std::filesystem::remove(volume_ / "step-3/shard");
  const auto removed = remove_older_copies(volume_, {1});
  ASSERT_OK(removed);
  ASSERT_EQ(removed->size(), 1u);
  EXPECT_EQ(removed->front().because, "keep is 1, and step-2 and those above it are whole");
  EXPECT_EQ(names(), (Names{"step-3", "step-2"}));
}

TEST_F(PublishedCopies, KeepSparesMultiplesOfKeepEveryAndTheBestModel) {
  for (const char* name : {"checkpoint-10", "checkpoint-11", "checkpoint-12"}) send(name);
  std::filesystem::create_directories(folder_ / "source/checkpoint-13");
  write_text(folder_ / "source/checkpoint-13/trainer_state.json",
             R"({"best_model_checkpoint": "out/checkpoint-11"})");
  send("checkpoint-13");
  ASSERT_OK(remove_older_copies(volume_, {1, 10, {}}));
  EXPECT_EQ(names(), (Names{"checkpoint-13", "checkpoint-11", "checkpoint-10"}));
}

TEST_F(PublishedCopies, KeepNeverDeletesTheLastOne) {
  send("step-1");
  ASSERT_OK(remove_older_copies(volume_, {0}));
  EXPECT_EQ(names(), Names{"step-1"});
}

TEST_F(PublishedCopies, AnInterruptedRemovalIsFinishedByTheNext) {
  send("step-1");
  send("step-2");
  std::filesystem::rename(volume_ / "step-1", volume_ / ".step-1.spark-removed");
  mark_rest(volume_ / ".step-1.spark-removed", ".spark-removed");
  ASSERT_OK(remove_older_copies(volume_, {2}));
  EXPECT_FALSE(std::filesystem::exists(volume_ / ".step-1.spark-removed"));
  EXPECT_FALSE(std::filesystem::exists(volume_ / ".step-1.spark-manifest"));
  EXPECT_EQ(names(), Names{"step-2"});
}

// In a folder without the sticky bit others rename what they may not delete.
TEST_F(PublishedCopies, WhatOthersGaveTheNamesOfRemovalsAndManifestsIsNotDeleted) {
  send("step-1");
  send("step-2");
  const char* const names[] = {".a.spark-removed", ".b.spark-manifest", ".step-3.spark-shards"};
  for (const char* name : names) {
    write_text(volume_ / "thesis/chapter", "x");
    std::filesystem::rename(volume_ / "thesis", volume_ / name);
  }
  write_text(volume_ / ".c.spark-manifest", "a file");
  PruneNotes notes;
  ASSERT_OK(remove_older_copies(volume_, {1}, notes));
  for (const char* name : names) EXPECT_EQ(read_text(volume_ / name / "chapter"), "x") << name;
  ASSERT_EQ(notes.unproven.size(), 1U);
  EXPECT_NE(notes.unproven[0].find(".a.spark-removed"), std::string::npos) << notes.unproven[0];
  EXPECT_EQ(read_text(volume_ / ".c.spark-manifest"), "a file");
  EXPECT_EQ(this->names(), Names{"step-2"});
}

// A user who may write in a copy puts a FIFO there, which blocks an open, before or after the rename.
TEST_F(PublishedCopies, WhatHasTheNameOfAMarkInACopyDelaysNoRemoval) {
  ::alarm(60);  // for want of a reader a FIFO blocks for good
  for (const char* name : {"step-1", "step-2", "step-3"}) send(name);
  ASSERT_EQ(::mkfifo((volume_ / "step-1/.spark-removed").c_str(), 0666), 0);
  write_text(volume_ / "step-2/.spark-removed/x", "x");
  ASSERT_OK(remove_older_copies(volume_, {1}));
  ::alarm(0);
  EXPECT_EQ(this->names(), Names{"step-3"});
  const auto left = std::filesystem::directory_iterator(volume_);
  EXPECT_EQ(std::distance(left, {}), 2) << "the newest and its manifest";
}

TEST_F(PublishedCopies, AFolderThatOthersPutInThePlaceOfACopyIsNotDeleted) {
  send("step-1");
  send("step-2");
  write_text(volume_ / "thesis/chapter", "x");
  PruneNotes notes;
  notes.on_removal = [&](const RemovedCopy&) {
    std::filesystem::rename(volume_ / "step-1", volume_ / "aside");
    std::filesystem::rename(volume_ / "thesis", volume_ / "step-1");
  };
  ASSERT_OK(remove_older_copies(volume_, {1}, notes));
  EXPECT_EQ(read_text(volume_ / "step-1/chapter"), "x");
  EXPECT_TRUE(std::filesystem::exists(volume_ / "aside/shard"));
  EXPECT_TRUE(notes.failure);
}

TEST_F(PublishedCopies, KeepSparesTheManifestOfACopyBeingPublished) {
  send("step-1");
  std::filesystem::rename(volume_ / "step-1", folder_ / "aside");
  std::filesystem::create_directories(volume_ / ".step-1.spark-partial");
  ASSERT_OK(remove_older_copies(volume_, {1}));
  EXPECT_TRUE(std::filesystem::exists(volume_ / ".step-1.spark-manifest"));
}

// As a job that runs as root in a container does, in a user's folder.
TEST_F(PublishedCopies, ACopyThatCannotBeEmptiedStaysWholeAndTheOthersAreDeleted) {
  if (::geteuid() != 0) SPARK_SKIP("only root can make another user's folder");
  for (const char* name : {"step-1", "step-2", "step-3", "step-4"}) send(name);
  const std::string give =
      "chmod 755 " + folder_.path().string() + "; chown -R 65534:65534 " + volume_.string();
  ASSERT_EQ(std::system(give.c_str()), 0);
  write_text(volume_ / "step-1/__pycache__/x.pyc", "x");
  write_text(volume_ / ".step-0.spark-removed/x", "x");  // of another user
  EXPECT_TRUE(test::as_nobody([&] {
    PruneNotes notes;
    const auto removed = remove_older_copies(volume_, {1}, notes);
    return removed && removed->size() == 2 && notes.failure.has_value();
  }));
  EXPECT_TRUE(std::filesystem::exists(volume_ / "step-1/shard")) << "it has its name";
  EXPECT_TRUE(std::filesystem::exists(volume_ / "step-4"));
  EXPECT_FALSE(std::filesystem::exists(volume_ / "step-2"));
}

// The path of the copy is too long for a system call, like any error that is not "it does not exist".
TEST_F(PublishedCopies, KeepSparesTheManifestOfACopyThatCannotBeLookedAt) {
  const auto before = std::filesystem::current_path();
  const std::string copy(100, 'c'), manifest = "." + copy + ".spark-manifest";
  std::filesystem::path deep = folder_.path();
  std::filesystem::current_path(deep);
  for (std::size_t left = 4090; deep.native().size() < left;) {
    const std::string part(std::min<std::size_t>(200, left - deep.native().size()), 'd');
    std::filesystem::create_directory(part);
    std::filesystem::current_path(part);
    deep /= part;
  }
  std::filesystem::create_directory(copy);
  write_text(std::filesystem::path(".") / manifest, "x");
  EXPECT_FALSE(remove_older_copies(deep, {1}));
  EXPECT_TRUE(std::filesystem::exists(manifest));
  std::filesystem::current_path(before);
}

TEST_F(PublishedCopies, EachIsNamedRightBeforeItIsDeleted) {
  for (const char* name : {"step-1", "step-2", "step-3"}) send(name);
  std::vector<std::string> told;
  PruneNotes notes;
  notes.on_removal = [&](const RemovedCopy& one) {
    EXPECT_TRUE(std::filesystem::exists(volume_ / one.name / "shard"));
    told.push_back(one.name + ": " + one.because);
  };
  ASSERT_OK(remove_older_copies(volume_, {1}, notes));
  const std::string because = ": keep is 1, and step-3 and those above it are whole";
  EXPECT_THAT(told, testing::ElementsAre("step-2" + because, "step-1" + because));
}

TEST_F(PublishedCopies, APublishingThatCannotBeCompletedKeepsNoOtherFromIt) {
  send("step-1");
  for (const char* name : {"step-2", "step-3"}) {
    send(name);
    send_until("flush", name);
  }
  std::filesystem::remove(volume_ / ".step-2.spark-manifest");
  std::filesystem::create_directories(volume_ / ".step-2.spark-manifest/in-the-way");
  EXPECT_FALSE(finish_publishings(volume_));
  EXPECT_FALSE(std::filesystem::exists(volume_ / ".step-3.spark-partial/manifest"));
  PruneNotes notes;
  const auto removed = remove_older_copies(volume_, {1}, notes);
  ASSERT_OK(removed);
  EXPECT_TRUE(notes.failure);
  ASSERT_EQ(removed->size(), 1u);
  EXPECT_EQ(removed->front().name, "step-1");
}

// Whatever has kept it there.
TEST_F(PublishedCopies, WhatAPointerLeadsToIsNeverDeleted) {
  const auto left = [&](const std::string& name) {
    for (const char* each : {"iter_0000001", "iter_0000002", "iter_0000003"}) send(each);
    EXPECT_TRUE(remove_older_copies(volume_, {1}));
    EXPECT_EQ(names(), (Names{"iter_0000003", name}));
  };
  for (const auto& target : {std::filesystem::path("iter_0000001"), volume_ / "iter_0000001/shard",
                             std::filesystem::path("./iter_0000001/")}) {
    std::filesystem::create_directories(volume_);
    std::filesystem::create_symlink(target, volume_ / "latest");
    left("iter_0000001");
    std::filesystem::remove(volume_ / "latest");
  }
  std::filesystem::create_symlink("newest", volume_ / "latest");
  std::filesystem::create_symlink("iter_0000002", volume_ / "newest");
  left("iter_0000002");
  std::filesystem::remove(volume_ / "latest");
  write_text(volume_ / "latest", "iter_0000001\n");
  left("iter_0000001");
  std::filesystem::remove(volume_ / "latest");
  write_text(volume_ / "latest_checkpointed_iteration.txt", "2\n");
  left("iter_0000002");
}

// Others may have made it, and it would fill the volume.
TEST_F(PublishedCopies, APointerKeepsOnlyWhatItLeadsToWhateverItsTextIs) {
  for (const auto& text : {std::string("step-1/../step-2/../none"), std::string(300, 'a')}) {
    for (const char* name : {"step-1", "step-2", "step-3"}) send(name);
    std::filesystem::create_symlink(text, volume_ / "latest");
    PruneNotes notes;
    EXPECT_TRUE(remove_older_copies(volume_, {1}, notes));
    EXPECT_EQ(names(), Names{"step-3"});
    EXPECT_FALSE(notes.failure);
    std::filesystem::remove(volume_ / "latest");
  }
  send("step-2");
  std::filesystem::create_symlink("step-2/../step-3", volume_ / "latest");
  PruneNotes notes;
  send("step-4");
  EXPECT_TRUE(remove_older_copies(volume_, {1}, notes));
  EXPECT_EQ(names(), (Names{"step-4", "step-3"}));
  ASSERT_EQ(notes.stays.size(), 1U);
  EXPECT_THAT(notes.stays.front(), testing::StartsWith("step-3 in "));
}

// The drive, or a server, gives no answer.
TEST_F(PublishedCopies, NoneIsDeletedIfAPointerCannotBeRead) {
  for (const char* name : {"step-1", "step-2"}) send(name);
  std::filesystem::create_symlink("step-1", volume_ / "latest");
#ifdef SYS_readlink
  constexpr int kCalls[] = {SYS_readlink, SYS_readlinkat};
#else
  constexpr int kCalls[] = {SYS_readlinkat};
#endif
  const auto lost = [](const spark::test::FileCall& call) -> std::optional<long> {
    const long path = call.arguments[call.number == SYS_readlinkat ? 1 : 0];
    const bool is_latest = std::string_view(reinterpret_cast<const char*>(path)).ends_with("/latest");
    return is_latest ? std::optional<long>(-EIO) : std::nullopt;
  };
  EXPECT_EQ(run_and_kill(
                [&] {
                  if (!spark::test::intercept_calls(kCalls, lost).empty()) return 2;
                  return remove_older_copies(volume_, {1}) ? 1 : 0;
                },
                std::chrono::seconds(60)),
            0);
  EXPECT_EQ(names(), (Names{"step-2", "step-1"}));
}

}  // namespace
}  // namespace spark::staging
