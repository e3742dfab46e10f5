#include "fleet/adopted/verify_folder.hpp"

#include <gmock/gmock.h>

#include "tests/unit/fleet/adopted/adopted_fixture.hpp"

using namespace spark;
using namespace spark::fleet;
using spark::fleet::test::AdoptedFixture;
using testing::HasSubstr;

namespace {

class VerifyFolderTest : public AdoptedFixture {
 protected:
  Adoption adoption_{adopted_, state_dir_, clock_};
  const std::string before_ = std::string(20 * kMiB, 'l');

  Result<VerifiedFolder> verify(bool sha256 = false) {
    return verify_folder(adopted_, state_dir_, sha256, {}, stop_);
  }

  // As bytes that a drive has lost: the folder looks as it did. The manifest gets the identity that the
  // change has given to the file, as no program can set a ctime.
  void lose_bytes() {
    flip(path_ / "large");
    auto manifest = staging::ManifestReader::open(offer());
    staging::Manifest rewritten;
    static_cast<staging::ManifestHeader&>(rewritten) = manifest->header();
    const auto now = look_at(adopted_, stop_);
    ASSERT_TRUE(now);
    auto seen = now->walked.walked.entries.begin();
    while (auto entry = manifest->next()) {
      entry->mtime_ns = seen->mtime_ns;
      entry->ctime_ns = seen->ctime_ns;
      ++seen;
      rewritten.entries.push_back(std::move(*entry));
    }
    ASSERT_TRUE(staging::write_manifest(offer(), rewritten));
  }
};

TEST_F(VerifyFolderTest, AFolderWithItsContentStaysOffered) {
  adopt(adoption_);
  const auto verified = verify();
  ASSERT_TRUE(verified) << verified.error().message();
  EXPECT_EQ(verified->summary.files, 3u);
  EXPECT_EQ(verified->summary.hash, adoption_.summary().hash);
  EXPECT_TRUE(std::filesystem::exists(offer()));
}

TEST_F(VerifyFolderTest, LostBytesEndTheOfferUntilTheFileIsAnotherOne) {
  adopt(adoption_);
  lose_bytes();
  look(adoption_);
  EXPECT_EQ(adoption_.state(), AdoptionState::Offered) << "nothing shows it";
  const auto verified = verify();
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().kind, Errc::Mismatch);
  EXPECT_THAT(verified.error().message(), HasSubstr("change: large - "));
  EXPECT_FALSE(std::filesystem::exists(offer()));
  Adoption restarted(adopted_, state_dir_, clock_);
  for (int i = 0; i < 3; ++i) {
    write("sub/small", std::string(i + 2, 's'));  // another file's change brings it not back
    clock_.now += Adoption::kAgain;
    look(restarted);
    EXPECT_EQ(restarted.state(), AdoptionState::Failed);
    EXPECT_THAT(restarted.reason(), HasSubstr("large"));
  }
  write("large", before_);
  look(restarted);
  adopt(restarted);
  EXPECT_TRUE(verify());
}

TEST_F(VerifyFolderTest, AFileThatIsRightAfterAllIsOfferedOnceItIsTouched) {
  adopt(adoption_);
  lose_bytes();
  ASSERT_FALSE(verify());
  std::filesystem::last_write_time(path_ / "large", std::filesystem::file_time_type::clock::now());
  look(adoption_);
  adopt(adoption_);
  EXPECT_TRUE(verify());
}

TEST_F(VerifyFolderTest, AFolderThatIsNotOfferedIsNoDamage) {
  EXPECT_EQ(verify().error().kind, Errc::Unavailable);
  adopt(adoption_);
  write("sub/small", "other");
  EXPECT_EQ(verify().error().kind, Errc::Unavailable);
  EXPECT_FALSE(std::filesystem::exists(offer())) << "peers need not wait for the next look";
  look(adoption_);
  adopt(adoption_);
  adopted_.exclude = {"empty"};
  EXPECT_EQ(verify().error().kind, Errc::Unavailable) << "that is another set of files";
}

TEST_F(VerifyFolderTest, PublishedDigestsAreComparedOnRequestAndEndNoOffer) {
  const std::string small = staging::test::MadeHub::sha256_of("s");
  write("SHA256SUMS", small + "  sub/small\n" + std::string(64, 'a') + "  large\n");
  adopt(adoption_);
  EXPECT_TRUE(verify());
  const auto wrong = verify(true);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind, Errc::Mismatch);
  EXPECT_THAT(wrong.error().message(), HasSubstr("large does not match SHA256SUMS"));
  EXPECT_TRUE(std::filesystem::exists(offer()));
  write("SHA256SUMS", small + "  sub/small\n");
  look(adoption_);
  adopt(adoption_);
  const auto right = verify(true);
  ASSERT_TRUE(right) << right.error().message();
  EXPECT_EQ(right->sha256_files, 1u);
  std::filesystem::remove(path_ / "SHA256SUMS");
  look(adoption_);
  adopt(adoption_);
  EXPECT_EQ(verify(true).error().kind, Errc::NotFound) << "nothing was compared";
}

}  // namespace
