#include "fleet/adopted/adoptions.hpp"

#include "tests/unit/fleet/adopted/adopted_fixture.hpp"

using namespace spark;
using namespace spark::fleet;
using spark::fleet::test::AdoptedFixture;

namespace {

class AdoptionsTest : public AdoptedFixture {
 protected:
  const AdoptedFolder other_{"other", folder_ / "other"};
  AdoptionsTest() { staging::test::write_text(other_.path / "file", "o"); }

  // A file that takes hours to be read, of a folder that is listed first.
  AdoptedFolder endless() {
    const AdoptedFolder folder{"endless", folder_ / "endless"};
    staging::test::write_text(folder.path / "hole", "");
    std::filesystem::resize_file(folder.path / "hole", 1024 * kGiB);
    return folder;
  }
  void pass(Adoptions& adoptions, std::chrono::seconds time = Adoptions::kBetweenLooks) {
    clock_.now += time;
    adoptions.look({}, stop_);
  }
  // Looks, as every second, until that one has been read.
  void wait_until_offered(Adoptions& adoptions, std::size_t index) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (adoptions.all()[index].state() != AdoptionState::Offered) {
      ASSERT_LT(std::chrono::steady_clock::now(), end) << adoptions.all()[index].reason();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      pass(adoptions, std::chrono::seconds(1));
    }
  }
};

TEST_F(AdoptionsTest, FoldersAreLookedAtAndReadWhileALargeOneIsRead) {
  Adoptions adoptions({endless(), adopted_, other_}, state_dir_, clock_);
  pass(adoptions);
  wait_until_offered(adoptions, 1);
  wait_until_offered(adoptions, 2);
  EXPECT_EQ(adoptions.all()[0].state(), AdoptionState::Hashing);
  EXPECT_EQ(adoptions.all()[0].reason(), "its files are being read");
  const std::string before = adoptions.all()[1].summary().hash;
  std::filesystem::remove(path_ / "sub/small");
  pass(adoptions);
  EXPECT_EQ(adoptions.all()[1].state(), AdoptionState::Changing);
  EXPECT_FALSE(std::filesystem::exists(offer()));
  EXPECT_EQ(adoptions.all()[2].state(), AdoptionState::Offered);
  wait_until_offered(adoptions, 1);
  EXPECT_NE(adoptions.all()[1].summary().hash, before);
  EXPECT_EQ(adoptions.all()[0].state(), AdoptionState::Hashing);
}

TEST_F(AdoptionsTest, LargeFoldersAreReadOneAfterTheOtherAndTheSecondSaysThatItWaits) {
  AdoptedFolder second = endless();
  second.dataset = "second";
  Adoptions adoptions({endless(), second}, state_dir_, clock_);
  pass(adoptions);
  pass(adoptions);
  EXPECT_EQ(adoptions.all()[0].reason(), "its files are being read");
  EXPECT_EQ(adoptions.all()[1].state(), AdoptionState::Hashing);
  EXPECT_NE(adoptions.all()[1].reason().find("another folder"), std::string::npos);
}

TEST_F(AdoptionsTest, AFolderIsLookedAtAgainAfterAWhile) {
  Adoptions adoptions({adopted_}, state_dir_, clock_);
  int looks = 0;
  const auto look_after = [&](std::chrono::seconds time) {
    clock_.now += time;
    adoptions.look([&] { ++looks; }, stop_);
  };
  look_after({});
  look_after({});
  EXPECT_EQ(looks, 1) << "its files do not rest yet";
  look_after(Adoption::kRest);
  EXPECT_EQ(looks, 2);
  wait_until_offered(adoptions, 0);
  looks = 0;
  look_after(Adoptions::kBetweenLooks);
  look_after({});
  EXPECT_EQ(looks, 1);
}

}  // namespace
