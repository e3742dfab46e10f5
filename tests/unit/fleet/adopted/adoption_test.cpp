#include "fleet/adopted/adoption.hpp"

#include <gmock/gmock.h>
#include <sys/xattr.h>

#include "tests/unit/fleet/adopted/adopted_fixture.hpp"

using namespace spark;
using namespace spark::fleet;
using spark::fleet::test::AdoptedFixture;
using testing::HasSubstr;

namespace {

class AdoptionTest : public AdoptedFixture {};

TEST_F(AdoptionTest, AFolderAtRestIsOfferedWithTheHashThatACopyOfItWouldHave) {
  Adoption adoption(adopted_, state_dir_, clock_);
  look(adoption);
  EXPECT_EQ(adoption.state(), AdoptionState::Changing) << "its newest change may be of this moment";
  clock_.now += Adoption::kRest - std::chrono::milliseconds(1);
  look(adoption);
  EXPECT_EQ(adoption.state(), AdoptionState::Changing);
  EXPECT_FALSE(std::filesystem::exists(offer()));
  clock_.now += std::chrono::milliseconds(1);
  look(adoption);
  EXPECT_EQ(adoption.state(), AdoptionState::Offered) << adoption.reason();
  EXPECT_EQ(adoption.summary().hash, hash_of_copy());
  EXPECT_EQ(adoption.summary().files, 3u);
  EXPECT_EQ(read_offer(offer(), definition_of(adopted_))->summary.hash, adoption.summary().hash);
}

TEST_F(AdoptionTest, AFolderThatChangesWhileItIsReadIsNotOfferedAndIsReadAgainAtRest) {
  Adoption adoption(adopted_, state_dir_, clock_);
  adoption.look(stop_);
  clock_.now += Adoption::kRest;
  adoption.look(stop_);
  EXPECT_EQ(adoption.state(), AdoptionState::Hashing);
  const auto reading = adoption.reading();
  ASSERT_TRUE(reading);
  adoption.look(stop_);
  EXPECT_EQ(adoption.reading(), reading) << "it is not read twice";
  reading->run();
  flip(path_ / "large");
  adoption.look(stop_);
  EXPECT_EQ(adoption.state(), AdoptionState::Changing);
  EXPECT_TRUE(reading->stop);
  EXPECT_FALSE(std::filesystem::exists(offer()));
  clock_.now += Adoption::kRest;
  look(adoption);
  EXPECT_EQ(adoption.state(), AdoptionState::Offered);
  EXPECT_EQ(adoption.summary().hash, hash_of_copy());
}

TEST_F(AdoptionTest, AChangedAddedOrRemovedFileEndsTheOfferUntilTheFolderRestsAgain) {
  Adoption adoption(adopted_, state_dir_, clock_);
  adopt(adoption);
  const std::function<void()> changes[] = {
      [&] { flip(path_ / "large"); }, [&] { write("new", "n"); },
      [&] { std::filesystem::remove(path_ / "new"); },
      [&] { std::filesystem::permissions(path_ / "empty", std::filesystem::perms(0600)); }};
  for (const auto& change : changes) {
    const std::string before = adoption.summary().hash;
    change();
    look(adoption);
    EXPECT_EQ(adoption.state(), AdoptionState::Changing);
    EXPECT_FALSE(std::filesystem::exists(offer()));
    adopt(adoption);
    EXPECT_NE(adoption.summary().hash, before);
  }
}

TEST_F(AdoptionTest, AnUnchangedFolderIsOfferedAgainWithoutReadingItsFiles) {
  {
    Adoption adoption(adopted_, state_dir_, clock_);
    adopt(adoption);
  }
  const OfferVersion written = version_of(offer());
  Adoption restarted(adopted_, state_dir_, clock_);
  look(restarted);
  EXPECT_EQ(restarted.state(), AdoptionState::Offered);
  EXPECT_EQ(restarted.summary().files, 3u);
  std::filesystem::rename(path_, folder_ / "unmounted");
  look(restarted);
  EXPECT_EQ(restarted.state(), AdoptionState::Failed);
  EXPECT_FALSE(std::filesystem::exists(offer()));
  std::filesystem::rename(folder_ / "unmounted", path_);
  look(restarted);
  EXPECT_EQ(restarted.state(), AdoptionState::Offered);
  EXPECT_EQ(version_of(offer()), written);
}

// A file system may give the manifest of a folder that was changed and changed back the inode of the first.
TEST_F(AdoptionTest, AManifestIsNotTheOneOfAnEarlierTimeWithItsInode) {
  Adoption adoption(adopted_, state_dir_, clock_);
  adopt(adoption);
  const OfferVersion before = version_of(offer());
  EXPECT_TRUE(before.is_there());
  std::filesystem::last_write_time(offer(),
                                   std::filesystem::last_write_time(offer()) + std::chrono::seconds(1));
  EXPECT_EQ(version_of(offer()).inode, before.inode);
  EXPECT_NE(version_of(offer()), before);
}

TEST_F(AdoptionTest, WhatIsNoLongerAdoptedLeavesNothing) {
  Adoption adoption(adopted_, state_dir_, clock_);
  adopt(adoption);
  AdoptedFolder other = adopted_;
  other.dataset = "a:b/c";
  Adoption second(other, state_dir_, clock_);
  adopt(second);
  for (const char* rest : {"gone.manifest", "gone.manifest.aside", "gone.manifest.read",
                           "gone.manifest.damaged", "gone.manifest.new"})
    staging::test::write_text(state_dir_ / "adopted" / rest, "");
  forget_others(state_dir_, {"set", "a:b/c"});
  const auto names = [&] {
    std::set<std::string> all;
    for (const auto& file : std::filesystem::directory_iterator(state_dir_ / "adopted"))
      all.insert(file.path().filename());
    return all;
  };
  std::set<std::string> kept;
  for (const auto& file : {offer(), offer_file(state_dir_, "a:b/c")})
    kept.insert({file.filename(), notes_of(file).filename()});
  EXPECT_EQ(names(), kept);
  forget_others(state_dir_, {});
  EXPECT_TRUE(names().empty());
  forget_others(folder_ / "none", {});
}

TEST_F(AdoptionTest, AnotherDefinitionIsAnotherOffer) {
  Adoption adoption(adopted_, state_dir_, clock_);
  adopt(adoption);
  adopted_.exclude = {"empty"};
  EXPECT_FALSE(read_offer(offer(), definition_of(adopted_)));
  Adoption other(adopted_, state_dir_, clock_);
  look(other);
  EXPECT_EQ(other.state(), AdoptionState::Changing);
  EXPECT_FALSE(std::filesystem::exists(offer()));
  adopt(other);
  EXPECT_EQ(other.summary().files, 2u);
  EXPECT_EQ(other.summary().hash, hash_of_copy());
}

TEST_F(AdoptionTest, FurtherNamesOfAFileAreAsInACopy) {
  std::filesystem::create_hard_link(path_ / "large", path_ / "sub/again");
  Adoption adoption(adopted_, state_dir_, clock_);
  adopt(adoption);
  EXPECT_EQ(adoption.summary().hash, hash_of_copy());
}

TEST_F(AdoptionTest, AFolderThatEachPeerWouldRefuseIsNotOfferedNorRead) {
  if (::setxattr((path_ / "large").c_str(), "user.note", "x", 1, 0) != 0)
    GTEST_FAIL() << "the file system of the temporary folder has no attributes";
  Adoption adoption(adopted_, state_dir_, clock_);
  look(adoption);
  clock_.now += Adoption::kRest;
  look(adoption);
  EXPECT_EQ(adoption.state(), AdoptionState::Failed);
  EXPECT_THAT(adoption.reason(), HasSubstr("large has extended attributes or ACLs"));
  EXPECT_FALSE(std::filesystem::exists(offer()));
  EXPECT_FALSE(std::filesystem::exists(notes_of(offer()))) << "not after hours of hashing";
  ASSERT_EQ(::removexattr((path_ / "large").c_str(), "user.note"), 0);
  adopt(adoption);
}

}  // namespace
