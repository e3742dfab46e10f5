#include "staging/outputs/destination_folder.hpp"

#include "base/file_system.hpp"
#include "staging/copy/copy.hpp"
#include "staging/copy/partial/publish.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging {
namespace {

using namespace test;

TEST(DestinationFolder, IsMadeWithItsParentsAndMayExistAlready) {
  const TempFolder mount;
  for (int i = 0; i < 2; ++i) {
    const auto made = make_destination_folder(mount.path(), "runs/run7");
    ASSERT_OK(made);
    EXPECT_EQ(present_path(made->path), std::filesystem::canonical(mount / "runs/run7"));
  }
  EXPECT_TRUE(std::filesystem::is_directory(mount / "runs/run7"));
}

TEST(DestinationFolder, IsNotInsideAPublishedCopy) {
  const TempFolder mount, source;
  write_text(source / "model", "x");
  ASSERT_OK(copy(source.path(), mount / "step-1", {}, kQuiet, StopFlag{false}));
  EXPECT_KIND(make_destination_folder(mount.path(), "step-1"), Errc::Refused);
  EXPECT_KIND(make_destination_folder(mount.path(), "step-1/below"), Errc::Refused);
  EXPECT_FALSE(std::filesystem::exists(mount / "step-1/below"));
}

TEST(DestinationFolder, IsNeverReachedThroughASymlink) {
  const TempFolder mount, elsewhere;
  std::filesystem::create_symlink(elsewhere.path(), mount / "link");
  EXPECT_KIND(make_destination_folder(mount.path(), "link"), Errc::Invalid);
  EXPECT_FALSE(make_destination_folder(mount.path(), "link/below").has_value());
  EXPECT_TRUE(std::filesystem::is_empty(elsewhere.path()));
}

TEST(DestinationFolder, IsNotAFile) {
  const TempFolder mount;
  write_text(mount / "file", "x");
  EXPECT_KIND(make_destination_folder(mount.path(), "file"), Errc::Invalid);
}

TEST(DestinationFolder, LosesTheUnfinishedCopiesOfOtherCheckpoints) {
  const TempFolder folder;
  const auto begin = [&](const std::string& name) {
    const auto partial = Destination{folder.path(), name}.partial();
    const auto area = PartialArea::try_open(partial);
    write_text(area->data() / "model", "half");
    return partial;
  };
  const auto old = begin("step-1"), own = begin("step-3"), whole = begin("step-4"), joined = begin("step-5"),
             replacing = begin("step-6"), busy = begin("step-7");
  write_text(whole / "manifest", "x"), write_text(joined / "state", "x"),
      write_text(replacing / "replaced/a", "x");
  const auto being_made = PartialArea::try_open(busy);
  ASSERT_OK(being_made);
  ASSERT_OK(remove_unfinished_copies(folder.path(), "step-3"));
  EXPECT_FALSE(std::filesystem::exists(old));
  for (const auto& kept : {own, whole, joined, replacing, busy})
    EXPECT_TRUE(std::filesystem::exists(kept / "data/model")) << kept;
}

// In a folder without the sticky bit others rename what they may not delete; into one with it they move
// folders to which they may write.
TEST(DestinationFolder, KeepsOtherFoldersThatGotTheNamesOfUnfinishedCopies) {
  namespace fs = std::filesystem;
  for (const unsigned mode : {0777U, 01777U}) {
    const TempFolder folder;
    fs::permissions(folder.path(), fs::perms(mode));
    for (const char* name : {".a.spark-partial", ".b.spark-partial"}) {
      write_text(folder / name / "data/train", "precious");
      fs::permissions(folder / name, fs::perms(0755));
    }
    fs::permissions(folder / ".b.spark-partial", fs::perms(0700));
    write_text(folder / ".b.spark-partial/journal", "x");
    const auto unproven = remove_unfinished_copies(folder.path(), "step-7");
    ASSERT_OK(unproven);
    ASSERT_EQ(unproven->size(), 2U);
    for (const std::string& sentence : *unproven)
      EXPECT_NE(sentence.find(folder.path().native() + "/."), std::string::npos) << sentence;
    EXPECT_EQ(read_text(folder / ".a.spark-partial/data/train"), "precious");
    EXPECT_EQ(read_text(folder / ".b.spark-partial/data/train"), "precious");
    EXPECT_EQ(fs::status(folder / ".a.spark-partial").permissions(), fs::perms(0755))
        << "it is not closed either";
  }
}

}  // namespace
}  // namespace spark::staging
