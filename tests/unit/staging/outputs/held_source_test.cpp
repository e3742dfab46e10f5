#include "staging/outputs/held_source.hpp"

#include <gmock/gmock.h>

#include <mutex>

#include "staging/copy/copy_with.hpp"
#include "staging/files/quiet_source.hpp"
#include "staging/outputs/published_copies.hpp"
#include "staging/outputs/published_with.hpp"
#include "tests/unit/staging/outputs/checkpoints_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;
namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

class HeldSource : public Checkpoints {
 protected:
  HeldSource() {
    written(1, "step-1/model", noise(3'000'000, 1));
    written(2, "step-1/part/optim", noise(100'000, 2));
    fs::create_symlink("model", out_ / "step-1/link");
    date("step-1/part", 500), date("step-1", 400);
  }
  std::int64_t state_of(const std::string& name) { return totals_of(out_ / name).written; }
  Result<fs::path> hold(const std::string& name) { return hold_checkpoint(out_, name, state_of(name)); }
  fs::path folder() const { return out_.parent_path() / ("." + out_.filename().native() + ".spark-held"); }

  std::vector<std::string> held() const {
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& one : fs::directory_iterator(folder(), error)) names.push_back(one.path().filename());
    std::erase(names, folder().filename());  // its mark
    return names;
  }

  StopFlag stop_{false};
};

TEST_F(HeldSource, IsSentAlthoughTheJobDeletesTheCheckpointMeanwhile) {
  const auto written = state_of("step-1");
  const auto held = hold("step-1");
  ASSERT_OK(held);
  EXPECT_EQ(held->parent_path(), folder()) << "beside the job's folder, not in it";
  EXPECT_EQ(totals_of(*held).written, written);
  CopyOptions options;
  options.needs_quiet_source = true;
  options.complete_state = written;
  CopyHooks hooks;
  std::once_flag once;  // it is called by several threads
  hooks.before_read = [&](const std::string&, Bytes) {
    std::call_once(once, [&] { fs::remove_all(out_ / "step-1"); });
  };
  const fs::path volume = out_.parent_path() / "volume";
  fs::create_directories(volume);
  ASSERT_OK(copy_with(hooks, *held, volume / "step-1", options, kQuiet, stop_));
  EXPECT_FALSE(fs::exists(out_ / "step-1"));
  EXPECT_EQ(read_file(volume / "step-1/part/optim").value(), noise(100'000, 2));
  EXPECT_EQ(fs::read_symlink(volume / "step-1/link"), "model");
  const auto copies = published_checkpoints(volume, Completeness());
  ASSERT_OK(copies);
  EXPECT_EQ(copies->size(), 1u) << "under the name that it had here";
}

TEST_F(HeldSource, ARemnantOfWhatWasSentFromOneIsKnownAsSuch) {
  const auto held = hold("step-1");
  ASSERT_OK(held);
  const fs::path volume = out_.parent_path() / "volume";
  fs::create_directories(volume);
  ASSERT_OK(copy(*held, volume / "step-1", {}, kQuiet, stop_));
  fs::remove(out_ / "step-1/part/optim");
  EXPECT_EQ(lost_file(volume / "step-1", out_ / "step-1").value(), "part/optim");
}

TEST_F(HeldSource, HoldsNothingThatHasChanged) {
  const auto written = state_of("step-1");
  this->written(3'000, "step-1/model", "saved again");
  EXPECT_EQ(hold_checkpoint(out_, "step-1", written).error().kind, Errc::Mismatch);
  EXPECT_EQ(hold_checkpoint(out_, "step-2", written).error().kind, Errc::Mismatch) << "it is gone";
  EXPECT_THAT(held(), IsEmpty());
}

TEST_F(HeldSource, IsReleasedWithWhatAKilledWorkerHasLeft) {
  written(3, "step-2/model");
  ASSERT_OK(hold("step-1"));
  ASSERT_OK(hold("step-1"));  // again, for a request that waits
  ASSERT_OK(hold("step-2"));
  fs::create_directories(folder() / ".step-7.new/part");
  ASSERT_OK(release_checkpoints(holding_folder(out_), {"step-1"}));
  EXPECT_THAT(held(), ElementsAre("step-1"));
  ASSERT_OK(release_checkpoints(holding_folder(out_), {}));
  EXPECT_FALSE(fs::exists(folder()));
  EXPECT_TRUE(fs::exists(out_ / "step-1/part/optim"));
  ASSERT_OK(release_checkpoints(holding_folder(out_), {}));
}

// In a folder without the sticky bit others rename what they may not delete.
TEST_F(HeldSource, AnotherFolderThatGotTheNameIsNeitherEmptiedNorUsed) {
  written(1, "../thesis/chapter");
  fs::rename(out_ / "../thesis", folder());
  ASSERT_OK(release_checkpoints(holding_folder(out_), {}));
  EXPECT_EQ(held_in(holding_folder(out_)), 0U);
  EXPECT_KIND(hold("step-1"), Errc::Refused);
  EXPECT_THAT(held(), ElementsAre("chapter"));
  fs::rename(folder(), out_ / "../thesis");
  ASSERT_OK(hold("step-1"));
  fs::rename(folder(), out_ / "../.run8.spark-held");
  ASSERT_OK(release_checkpoints(holding_folder(out_ / "../run8"), {}));
  EXPECT_TRUE(fs::exists(out_ / "../.run8.spark-held/step-1/model")) << "it is of another output";
}

// A hard link to any file of this user makes a mark, and a folder of this user may be open to others.
TEST_F(HeldSource, AFolderWithAForgedMarkIsNeitherEmptiedNorUsed) {
  const fs::path mark = folder() / folder().filename();
  written(1, "../thesis/private/chapter");
  fs::rename(out_ / "../thesis", folder());
  mark_rest(folder(), mark.filename());
  for (const auto mode : {0775, 0700}) {
    fs::permissions(folder(), fs::perms(mode));
    if (mode == 0700) fs::create_hard_link(mark, out_ / "notes");
    EXPECT_EQ(held_in(holding_folder(out_)), 0U);
    ASSERT_OK(release_checkpoints(holding_folder(out_), {}));
    EXPECT_KIND(hold("step-1"), Errc::Refused);
  }
  EXPECT_TRUE(fs::exists(folder() / "private/chapter"));
}

// The job is over, and its user archives the folder while the last checkpoint is sent.
TEST_F(HeldSource, IsFoundAfterTheJobsFolderIsGone) {
  ASSERT_OK(hold("step-1"));
  fs::rename(out_, out_.parent_path() / "archived");
  EXPECT_EQ(holding_folder(out_), fs::canonical(folder()));
  ASSERT_OK(release_checkpoints(holding_folder(out_), {}));
  EXPECT_FALSE(fs::exists(folder()));
}

// ext4 gives the numbers of deleted files to new ones at once.
TEST_F(HeldSource, ASaveThatGotNumbersOfDeletedFilesIsNoRemnantOfWhatWasSent) {
  const fs::path volume = out_.parent_path() / "volume";
  fs::create_directories(volume);
  ASSERT_OK(copy(out_ / "step-1", volume / "step-1", {}, kQuiet, stop_));
  fs::remove(out_ / "step-1/part/optim");
  written(9, "step-1/model", "another save, in the same files");
  EXPECT_EQ(lost_file(volume / "step-1", out_ / "step-1").value(), "");
  fs::remove(out_ / "step-1/model");
  EXPECT_EQ(lost_file(volume / "step-1", out_ / "step-1").value(), "model") << "only the folder is left";
}

TEST_F(HeldSource, AFileIsHeldAsWell) {
  written(1, "step-2.pt", "weights");
  const auto held = hold("step-2.pt");
  ASSERT_OK(held);
  fs::remove(out_ / "step-2.pt");
  EXPECT_EQ(read_file(*held).value(), "weights");
}

}  // namespace
}  // namespace spark::staging
