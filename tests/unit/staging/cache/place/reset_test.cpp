// A cache whose drive was replaced or emptied.
#include "staging/cache/place/reset.hpp"

#include "tests/unit/staging/cache/cache_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

class ResetTest : public CacheTest {
 protected:
  void SetUp() override {
    write_text(source_.path / "f", "content");
    ASSERT_OK(stage());
  }
  std::size_t listed() { return open()->list().value().size(); }
};

TEST_F(ResetTest, AnEmptiedDriveIsANewCacheAndWhatIsGoneIsNamed) {
  std::filesystem::remove_all(config_.path);
  std::filesystem::create_directory(config_.path);
  ASSERT_FALSE(Cache::open(config_, clock_));
  EXPECT_KIND(reset_cache(config_, clock_, Wish::DeleteCopies), Errc::Refused);
  const auto reset = reset_cache(config_, clock_, Wish::Forget);
  ASSERT_OK(reset);
  ASSERT_EQ(reset->forgotten.size(), 1U);
  EXPECT_EQ(reset->forgotten[0].dataset, "set");
  EXPECT_EQ(listed(), 0U);
  EXPECT_EQ(stage().value().generation, 2U);  // a number of an earlier copy is not used again
  EXPECT_TRUE(reset_cache(config_, clock_, Wish::DeleteCopies).value().forgotten.empty());
}

TEST_F(ResetTest, ADriveThatIsNotMountedIsNotForgottenUnasked) {
  std::filesystem::rename(config_.path, folder_ / "unmounted");
  std::filesystem::create_directory(config_.path);
  for (const Wish wish : {Wish::Nothing, Wish::DeleteCopies}) {
    const auto refused = reset_cache(config_, clock_, wish);
    EXPECT_KIND(refused, Errc::Refused);
    EXPECT_NE(refused.error().what.find("set "), std::string::npos) << refused.error().what;
    EXPECT_NE(refused.error().hint.find("--forget"), std::string::npos) << refused.error().hint;
  }
  std::filesystem::remove(config_.path);
  std::filesystem::rename(folder_ / "unmounted", config_.path);
  EXPECT_EQ(listed(), 1U);
}

TEST_F(ResetTest, TheCopiesOfAnotherCacheInTheFolderAreFoundAndNoneIsDeleted) {
  const auto here = config_.path;
  config_ = {folder_ / "other", folder_ / "other-state", 0, 0};
  ASSERT_OK(stage());
  config_ = {folder_ / "other", folder_ / "state", 0, 0};  // that drive, in this host
  ASSERT_FALSE(Cache::open(config_, clock_));
  const auto refused = reset_cache(config_, clock_, Wish::Nothing);
  EXPECT_KIND(refused, Errc::Refused);
  EXPECT_NE(refused.error().what.find("another cache is in the folder"), std::string::npos);
  ASSERT_OK(reset_cache(config_, clock_, Wish::Forget));
  EXPECT_EQ(listed(), 1U);
  EXPECT_EQ(read_text(link() / "f"), "content");
  config_.path = here;  // and back: its copies are as they were
  ASSERT_OK(reset_cache(config_, clock_, Wish::Forget));
  EXPECT_EQ(listed(), 1U);
}

TEST_F(ResetTest, AUsableCacheIsEmptiedOnlyOnRequest) {
  // Its drive may have been mounted after it was called gone.
  for (const Wish wish : {Wish::Nothing, Wish::Forget}) {
    const auto refused = reset_cache(config_, clock_, wish);
    EXPECT_KIND(refused, Errc::Refused);
    EXPECT_NE(refused.error().what.find("set "), std::string::npos) << refused.error().what;
    EXPECT_NE(refused.error().hint.find("--delete-copies"), std::string::npos) << refused.error().hint;
    EXPECT_EQ(listed(), 1U);
  }
  const auto reset = reset_cache(config_, clock_, Wish::DeleteCopies);
  ASSERT_OK(reset);
  ASSERT_EQ(reset->deleted.size(), 1U);
  EXPECT_EQ(listed(), 0U);
  EXPECT_FALSE(std::filesystem::exists(config_.path / "data/set"));
  ASSERT_OK(reset_cache(config_, clock_, Wish::Nothing));  // nothing is left to do
}

TEST_F(ResetTest, ADamagedCatalogIsSetAsideAndTheCopiesAreFound) {
  write_text(config_.state_dir / "catalog.sqlite", std::string(8192, 'x'));
  ASSERT_FALSE(Cache::open(config_, clock_));
  const auto reset = reset_cache(config_, clock_, Wish::Nothing);
  ASSERT_OK(reset);
  EXPECT_EQ(read_text(config_.state_dir / "catalog.sqlite.old"), std::string(8192, 'x'));
  EXPECT_EQ(reset->set_aside, (config_.state_dir / "catalog.sqlite.old").native());
  EXPECT_TRUE(std::filesystem::exists(config_.state_dir / "catalog.sqlite"))
      << "a daemon that knew one wants it";
  EXPECT_EQ(listed(), 1U);
}

}  // namespace
}  // namespace spark::staging
