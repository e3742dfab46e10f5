#include "staging/outputs/destination_folder.hpp"

#include "tests/unit/staging/support.hpp"

namespace spark::staging {
namespace {

using namespace test;

TEST(DestinationFolder, IsMadeWithItsParentsAndMayExistAlready) {
  const TempFolder mount;
  for (int i = 0; i < 2; ++i) {
    const auto made = make_destination_folder(mount.path(), "runs/run7");
    ASSERT_OK(made);
    EXPECT_EQ(*made, mount / "runs/run7");
  }
  EXPECT_TRUE(std::filesystem::is_directory(mount / "runs/run7"));
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

}  // namespace
}  // namespace spark::staging
