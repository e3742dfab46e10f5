// Copies that are in no other place when the old folder of a moved cache is deleted.
#include <sys/syscall.h>

#include <thread>

#include "staging/cache/catalog/spare_leases.hpp"
#include "staging/cache/place/begun.hpp"
#include "staging/copy/partial/partial_area.hpp"
#include "tests/support/failing_call.hpp"
#include "tests/unit/staging/cache/place/relocation_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

class LastCopiesTest : public RelocationToADriveTest {
 protected:
  const Source set_ = source_;
  const Source two_{"two", folder_ / "two", {}};

  // As peers may have given it, or with a source that is away since.
  void stage_two_without_its_source() {
    source_ = two_;
    write_text(source_.path / "g", noise(50'000, 7));
    ASSERT_OK(stage());
    std::filesystem::rename(source_.path, folder_ / "away");
  }
  // The reload.
  void set_path() {
    config_.path = new_;
    ASSERT_NE(open(), nullptr);
  }
  std::string text_of(const std::string& dataset, const std::string& file) {
    return read_text(config_.path / folder_name(dataset) / file);
  }
  // The sentence of the refusal; empty: it was done.
  std::string refusal() {
    const auto refused = move(new_);
    if (refused) return "";
    EXPECT_EQ(refused.error().kind, Errc::Refused);
    EXPECT_TRUE(std::filesystem::exists(old_ / "data")) << "nothing was deleted";
    return refused.error().message();
  }
};

TEST_F(LastCopiesTest, WhatWasStagedAfterTheLastCallIsBroughtOver) {
  ASSERT_OK(move(new_));
  stage_two_without_its_source();
  set_path();
  const auto cleared = move(new_);
  ASSERT_OK(cleared);
  EXPECT_EQ(cleared->how, Relocated::OldDeleted);
  ASSERT_EQ(cleared->brought.size(), 1U);
  EXPECT_EQ(cleared->brought[0].dataset, "two");
  EXPECT_EQ(cleared->brought[0].bytes, 50'000U);
  EXPECT_FALSE(std::filesystem::exists(old_));
  EXPECT_EQ(text_of("two", "g"), noise(50'000, 7));
  ASSERT_OK(open()->verify("two", {}, kQuiet, stop_));
  EXPECT_EQ(text_of("set", "b"), "b");
}

// A daemon that starts then has to know it: the old folder is not deleted while anything is leased.
TEST_F(LastCopiesTest, ALeaseOnACopyThatOnlyTheOldFolderHasIsKept) {
  ASSERT_OK(move(new_));
  write_text(source_.path / "b", "later");
  const auto later = stage();
  ASSERT_OK(later);
  Lease lease;
  lease.id = "job";
  lease.dataset = "set";
  lease.generation = later->generation;
  ASSERT_OK(catalog()->add_lease(lease));
  set_path();
  EXPECT_EQ(catalog()->generations()->size(), 1U);
  const auto leases = catalog()->leases();
  ASSERT_OK(leases);
  ASSERT_EQ(leases->size(), 1U);
  EXPECT_EQ(leases->front().generation, later->generation);
}

// As in a full state folder.
TEST_F(LastCopiesTest, LeasesBesideTheCopiesComeToTheNewFolder) {
  Lease lease;
  lease.id = "job";
  lease.dataset = "set";
  lease.generation = 1;
  ASSERT_OK(SpareLeases(old_).add(lease));
  Lease ended = lease;
  ended.id = "ended";
  ended.expires = WallTime(std::chrono::seconds(1));
  ASSERT_OK(SpareLeases(old_).add(ended));
  ASSERT_OK(move(new_));
  const auto leases = catalog()->leases();
  ASSERT_OK(leases);
  ASSERT_EQ(leases->size(), 1U);
  EXPECT_EQ(leases->front().id, "job");
  EXPECT_TRUE(SpareLeases(new_).all()->leases.empty());
}

// The catalog still has what is in the old folder.
TEST_F(LastCopiesTest, ItDoesNotDependOnTheRecoveryAfterTheReload) {
  ASSERT_OK(move(new_));
  stage_two_without_its_source();
  source_ = set_;
  write_text(source_.path / "b", "later");
  ASSERT_OK(stage());
  config_.path = new_;
  const auto cleared = move(new_);
  ASSERT_OK(cleared);
  EXPECT_EQ(cleared->brought.size(), 2U);
  ASSERT_NE(open(), nullptr);
  EXPECT_EQ(text_of("two", "g"), noise(50'000, 7));
  EXPECT_EQ(text_of("set", "b"), "later");
}

TEST_F(LastCopiesTest, ALaterCopyOfADatasetIsBroughtOverAndServed) {
  ASSERT_OK(move(new_));
  write_text(source_.path / "b", "later");
  ASSERT_OK(stage());
  set_path();
  EXPECT_EQ(text_of("set", "b"), "b");
  ASSERT_OK(move(new_));
  expect_whole_with(new_, "later");
}

// Also if only an earlier one could be copied.
TEST_F(LastCopiesTest, ADatasetWithANewerCopyInTheNewPlaceNeedsNone) {
  ASSERT_OK(move(new_));
  write_text(source_.path / "b", "later");
  ASSERT_OK(stage());
  corrupt(link() / "train/a");
  set_path();
  write_text(source_.path / "b", "newest");
  ASSERT_OK(stage());
  const auto cleared = move(new_);
  ASSERT_OK(cleared);
  EXPECT_TRUE(cleared->brought.empty());
  expect_whole_with(new_, "newest");
}

TEST_F(LastCopiesTest, ADamagedLastCopyIsDeletedOnRequestOnly) {
  stage_two_without_its_source();
  corrupt(old_ / "two/g");
  source_ = set_;
  const auto moved = move(new_);
  ASSERT_OK(moved);
  ASSERT_EQ(moved->left.size(), 1U);
  set_path();
  EXPECT_NE(refusal().find("two, 50.0 kB: "), std::string::npos) << refusal();
  EXPECT_NE(refusal().find("--discard"), std::string::npos);
  last_ = LastCopies::Deleted;
  const auto discarded = move(new_);
  ASSERT_OK(discarded);
  EXPECT_EQ(discarded->how, Relocated::OldDeleted);
  ASSERT_EQ(discarded->deleted.size(), 1U);
  EXPECT_EQ(discarded->deleted[0].dataset, "two");
  EXPECT_FALSE(std::filesystem::exists(old_));
  expect_whole(new_);
}

TEST_F(LastCopiesTest, ACopyWithoutAReadableManifestKeepsTheOldPlace) {
  ASSERT_OK(move(new_));
  stage_two_without_its_source();
  write_text(old_ / "data/two/.1.spark-manifest", "cut off");
  set_path();
  EXPECT_NE(refusal().find("two, 0 B: "), std::string::npos) << refusal();
}

TEST_F(LastCopiesTest, ItWaitsForAStagingOfTheSameDataset) {
  ASSERT_OK(move(new_));
  stage_two_without_its_source();
  set_path();
  {
    auto staging = PartialArea::try_open(CacheFolder(new_).partial("two"));
    ASSERT_OK(staging);
    hooks_of_move_.patience = std::chrono::milliseconds(200);
    const auto later = move(new_);
    EXPECT_KIND(later, Errc::Unavailable);
    EXPECT_EQ(later.error().hint.find("--discard"), std::string::npos) << "the copy is sound";
    hooks_of_move_.patience = std::chrono::seconds(30);
    std::thread ending([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      const PartialArea ends = std::move(*staging);
    });
    const auto cleared = move(new_);
    ending.join();
    ASSERT_OK(cleared);
  }
  EXPECT_EQ(text_of("two", "g"), noise(50'000, 7));
}

TEST_F(LastCopiesTest, WhatMayBeDeletedIsBroughtIfItIsSound) {
  ASSERT_OK(move(new_));
  stage_two_without_its_source();
  set_path();
  last_ = LastCopies::Deleted;
  ASSERT_OK(move(new_));
  EXPECT_EQ(text_of("two", "g"), noise(50'000, 7));
}

// As after a deletion whose last step was interrupted, and a move back.
TEST_F(LastCopiesTest, AFormerDeletionDoesNotCount) {
  write_text(old_ / ".spark-stage-cache.moved", "of an earlier move\n");
  ASSERT_OK(move(new_));
  stage_two_without_its_source();
  set_path();
  const auto cleared = move(new_);
  ASSERT_OK(cleared);
  EXPECT_EQ(cleared->brought.size(), 1U);
  EXPECT_EQ(text_of("two", "g"), noise(50'000, 7));
}

TEST_F(LastCopiesTest, TheRecoveryLeavesWhatTheMoveFills) {
  ASSERT_OK(move(new_));
  stage_two_without_its_source();
  set_path();
  hooks_of_move_.copy.step = [&](const char*) { return settle_in(new_); };
  const auto cleared = move(new_);
  ASSERT_OK(cleared);
  EXPECT_EQ(cleared->brought.size(), 1U);
  EXPECT_EQ(text_of("two", "g"), noise(50'000, 7));
  ASSERT_OK(open()->verify("two", {}, kQuiet, stop_));
}

TEST_F(LastCopiesTest, OneProcessFillsThePlace) {
  ASSERT_OK(move(new_));
  stage_two_without_its_source();
  set_path();
  hooks_of_move_.patience = std::chrono::milliseconds(200);
  {
    const auto other = hold_filling(CacheFolder(new_), {});
    ASSERT_OK(other);
    EXPECT_KIND(move(new_), Errc::Unavailable);
  }
  ASSERT_OK(move(new_));
}

TEST_F(LastCopiesTest, AnInterruptedLastStepIsGoneOnWith) {
  ASSERT_OK(move(new_));
  stage_two_without_its_source();
  set_path();
  ASSERT_OK(settle_in(new_));  // after the reload
  hooks_of_move_.copy.step = [&](const char* now) -> Result<> {
    return std::string_view(now) == "filled" ? fail(Errc::Failed, "^C") : Result<>();
  };
  ASSERT_FALSE(move(new_));
  hooks_of_move_.copy.step = {};
  write_text(new_ / ".moving/other.1", "of a dataset that is gone");
  ASSERT_OK(settle_in(new_));  // after the job
  EXPECT_TRUE(std::filesystem::exists(new_ / ".moving/two.1/g"));
  const auto cleared = move(new_);
  ASSERT_OK(cleared);
  EXPECT_EQ(text_of("two", "g"), noise(50'000, 7));
  EXPECT_FALSE(std::filesystem::exists(new_ / ".moving"));
}

TEST_F(LastCopiesTest, InterruptedAnywhereItIsRepeated) {
  for (const char* step : {"filled", "entered", "carried"}) {
    SCOPED_TRACE(step);
    config_.path = old_;
    source_ = set_;
    ASSERT_OK(stage());
    ASSERT_OK(move(new_));
    stage_two_without_its_source();
    set_path();
    hooks_of_move_.copy.step = [&](const char* now) -> Result<> {
      return std::string_view(now) == step ? fail(Errc::Failed, "the power went") : Result<>();
    };
    EXPECT_FALSE(move(new_));
    hooks_of_move_.copy.step = {};
    ASSERT_NE(open(), nullptr);
    const auto cleared = move(new_);
    ASSERT_OK(cleared);
    EXPECT_FALSE(std::filesystem::exists(old_));
    EXPECT_EQ(text_of("two", "g"), noise(50'000, 7));
    ASSERT_OK(open()->verify("two", {}, kQuiet, stop_));
    std::filesystem::remove_all(new_);
    std::filesystem::remove_all(config_.state_dir);
    std::filesystem::rename(folder_ / "away", two_.path);
  }
}

TEST_F(LastCopiesTest, WithoutRoomForItTheOldPlaceStays) {
  ASSERT_OK(move(new_));
  source_ = two_;
  write_text(source_.path / "g", noise(5'000'000, 7));
  ASSERT_OK(stage());
  set_path();
  EXPECT_KIND(move(new_), Errc::NoSpace);
  EXPECT_TRUE(std::filesystem::exists(old_ / "data/two/1/g"));
}

// No answer of the old drive is no permission.
TEST_F(LastCopiesTest, AnOldFolderThatCannotBeOpenedIsNotDeleted) {
  ASSERT_OK(move(new_));
  set_path();
  const auto clears = [&] {
    static constexpr int kCalls[] = {SYS_openat};
    const auto fail_data = [](const spark::test::FileCall& call) -> std::optional<long> {
      const bool is_data = std::string_view(reinterpret_cast<const char*>(call.arguments[1])) == "data";
      return is_data ? std::optional<long>(-EMFILE) : std::nullopt;
    };
    if (!spark::test::intercept_calls(kCalls, fail_data).empty()) return 10;
    return move(new_) ? 1 : 0;
  };
  EXPECT_EQ(run_and_kill(clears, std::chrono::seconds(60)), 0);
  EXPECT_TRUE(std::filesystem::exists(old_ / "data/set/1/b"));
}

// Of an interrupted call: no later one would go on with it.
TEST_F(LastCopiesTest, WhatACallHasBegunInTheNewPlaceIsDeletedOnceThatIsInForce) {
  ASSERT_OK(move(new_));
  source_ = two_;
  write_text(source_.path / "g", noise(50'000, 7));
  ASSERT_OK(stage());
  for (const bool by_recovery : {true, false}) {
    config_.path = old_;
    ASSERT_NE(open(), nullptr);
    hooks_of_move_.copy.step = [&](const char* now) -> Result<> {
      return std::string_view(now) == "filled" ? fail(Errc::Failed, "^C") : Result<>();
    };
    ASSERT_FALSE(move(new_));
    hooks_of_move_.copy.step = {};
    ASSERT_TRUE(std::filesystem::exists(new_ / ".moving"));
    set_path();
    if (by_recovery) {
      ASSERT_OK(settle_in(new_));
    } else {
      ASSERT_OK(move(new_));
    }
    EXPECT_FALSE(std::filesystem::exists(new_ / ".moving"));
  }
}

}  // namespace
}  // namespace spark::staging
