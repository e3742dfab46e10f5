// An adopted folder whose drive is not mounted is an empty folder, or another one.
#include <gmock/gmock.h>

#include "tests/unit/fleet/adopted/adopted_fixture.hpp"

using namespace spark;
using namespace spark::fleet;
using spark::fleet::test::AdoptedFixture;
using testing::HasSubstr;

namespace {

class LostDriveTest : public AdoptedFixture {
 protected:
  void expect_refused(Adoption& adoption, const std::string& why) {
    for (int i = 0; i < 3; ++i) {
      look(adoption);
      clock_.now += Adoption::kAgain;
    }
    EXPECT_EQ(adoption.state(), AdoptionState::Failed);
    EXPECT_THAT(adoption.reason(), HasSubstr(why));
    EXPECT_FALSE(std::filesystem::exists(offer()));
  }
};

TEST_F(LostDriveTest, AnEmptyMountPointIsNotOfferedAndTheFolderIsNotReadAgain) {
  Adoption adoption(adopted_, state_dir_, clock_);
  adopt(adoption);
  const OfferVersion written = version_of(offer());
  std::filesystem::rename(path_, folder_ / "drive");
  std::filesystem::create_directories(path_ / "lost+found");
  expect_refused(adoption, "has become empty");
  Adoption restarted(adopted_, state_dir_, clock_);
  expect_refused(restarted, "has become empty");
  std::filesystem::remove_all(path_);
  std::filesystem::rename(folder_ / "drive", path_);
  look(restarted);
  EXPECT_EQ(restarted.state(), AdoptionState::Offered) << restarted.reason();
  EXPECT_EQ(version_of(offer()), written);
}

TEST_F(LostDriveTest, TheFolderBelowAMountPointIsNotOfferedInItsPlace) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can mount";
  Adoption adoption(adopted_, state_dir_, clock_);
  std::filesystem::rename(path_, folder_ / "below");
  std::filesystem::create_directory(path_);
  {
    const staging::test::SmallTmpfs drive(path_, "size=64m");
    write("file", "of the drive");
    adopt(adoption);
  }
  std::filesystem::remove(path_);
  std::filesystem::rename(folder_ / "below", path_);
  expect_refused(adoption, "another file system");
}

TEST_F(LostDriveTest, AFolderWithoutAnyFileIsNeverOffered) {
  std::filesystem::remove_all(path_);
  std::filesystem::create_directories(path_ / "sub");
  Adoption adoption(adopted_, state_dir_, clock_);
  expect_refused(adoption, "has no file");
}

}  // namespace
