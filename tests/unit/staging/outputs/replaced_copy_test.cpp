#include <gtest/gtest.h>

#include "staging/copy/copy_with.hpp"
#include "staging/outputs/published_copies.hpp"
#include "tests/unit/staging/outputs/published_copies_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

// NFS can't exchange two names: a host that dies between the two steps leaves nothing under the name.
TEST(ReplacedCopy, ThatWasInterruptedBetweenTheStepsHidesNoneAndIsCompletedByAnyHost) {
  const StopFlag stop{false};
  const TempFolder folder;
  const auto volume = folder / "volume", source = folder / "source/step-2";
  std::filesystem::create_directories(volume);
  std::filesystem::create_directories(source);
  write_text(source / "shard", "one");
  ASSERT_OK(copy(source, volume / "step-2", {}, kQuiet, stop));
  write_text(source / "shard", "saved again");
  CopyHooks killed;
  killed.step = [](std::string_view step) -> Result<> {
    return step == "aside" ? Result<>(fail(Errc::Failed, "killed")) : Result<>();
  };
  CopyOptions options;
  options.earlier.replaced_in_two_steps = true;
  EXPECT_FALSE(copy_with(killed, source, volume / "step-2", options, kQuiet, stop));
  EXPECT_FALSE(std::filesystem::exists(volume / "step-2"));
  NotListed not_listed;
  ASSERT_OK(published_checkpoints(volume, Completeness{Completeness::Rule::Dcp}, &not_listed));
  ASSERT_EQ(not_listed.unreadable.size(), 1u) << "a lower one would seem to be the highest";
  EXPECT_EQ(not_listed.unreadable.front().name, "step-2");
  ASSERT_OK(finish_publishings(volume));
  const auto copies = published_copies(volume);
  ASSERT_OK(copies);
  EXPECT_EQ(copies->size(), 1u);
  EXPECT_EQ(read_text(volume / "step-2/shard"), "saved again");
  EXPECT_FALSE(std::filesystem::exists(volume / ".step-2.spark-partial"));
  ASSERT_OK(verify_published(volume / "step-2", {}, kQuiet, stop));
}

// `chmod -R g+rX` of the volume's folder, or a note that a person leaves there.
TEST(WholeCopies, AreKnownByWhatTheyLackNotByTheirPermissions) {
  const StopFlag stop{false};
  const TempFolder folder;
  const auto volume = folder / "volume";
  std::filesystem::create_directories(volume);
  for (const char* name : {"step-1", "step-2", "step-3"}) {
    std::filesystem::create_directories(folder / name);
    write_text(folder / name / "shard", name);
    ASSERT_OK(copy(folder / name, volume / name, {}, kQuiet, stop));
  }
  std::filesystem::remove(volume / "step-3/shard");
  std::filesystem::permissions(volume / "step-2/shard", std::filesystem::perms(0664));
  std::filesystem::permissions(volume / "step-2", std::filesystem::perms(0775));
  write_text(volume / "step-2/README", "the best one");
  PruneNotes notes;
  const auto removed = remove_older_copies(volume, {1}, notes);
  ASSERT_OK(removed);
  ASSERT_EQ(removed->size(), 1u);
  EXPECT_EQ(removed->front().name, "step-1");
  EXPECT_EQ(notes.not_whole, std::vector<std::string>{"step-3"});
}

// As another user may do where both may write: that copy's manifest tells nothing of the opened one.
TEST_F(PublishedCopies, OneThatIsPutInTheirPlaceMeanwhileDoesNotCount) {
  send("step-1");
  const auto tree = open_tree(volume_ / "step-1");
  ASSERT_OK(tree);
  std::filesystem::rename(volume_ / "step-1", volume_ / "aside");
  send("step-1");
  const auto other = open_tree(volume_ / "step-1");
  ASSERT_OK(other);
  EXPECT_TRUE(published_hash(*other, stop_));
  EXPECT_EQ(published_hash(*tree, stop_), std::nullopt);
}

}  // namespace
}  // namespace spark::staging
