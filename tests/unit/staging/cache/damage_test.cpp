// Damage belongs to files, which generations share.
#include "staging/cache/cache.hpp"

#include "tests/unit/staging/cache/cache_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

class DamageTest : public CacheTest {};

TEST_F(DamageTest, DamageOfAFileThatGenerationsShareIsNotPassedOn) {
  write_text(source_.path / "same", noise(100'000, 1));
  write_text(source_.path / "f", "one");
  auto cache = open();
  const auto first = stage(*cache);
  ASSERT_OK(first);
  Lease lease;
  lease.id = "job";
  lease.dataset = "set";
  lease.generation = first->generation;
  ASSERT_OK(catalog()->add_lease(lease));
  write_text(source_.path / "f", "two!");
  const auto second = stage(*cache);
  ASSERT_OK(second);
  ASSERT_EQ(second->report.unchanged_bytes, 100'000u);
  corrupt(second->path / "same");
  EXPECT_KIND(cache->verify("set", {}, kQuiet, stop_), Errc::Mismatch);
  EXPECT_FALSE(std::filesystem::exists(link()));  // the leased one may share the damaged file
  const auto third = stage(*cache);
  ASSERT_OK(third);
  EXPECT_EQ(third->report.unchanged_bytes, 0u);
  EXPECT_EQ(differences_by_rsync(source_.path, third->path), "");
  ASSERT_OK(cache->verify("set", {}, kQuiet, stop_));
}

TEST_F(DamageTest, DamageFoundDuringACopyIsNotPublishedAsSound) {
  write_text(source_.path / "same", noise(100'000, 1));
  write_text(source_.path / "f", "one");
  ASSERT_OK(stage());
  write_text(source_.path / "f", "two!");
  hooks_.before_read = [&](const std::string& path, Bytes) {
    if (path != "f") return;
    corrupt(config_.path / "data/set/1/same");
    const auto other = Cache::open(config_, clock_);
    EXPECT_KIND((*other)->verify("set", {}, kQuiet, stop_), Errc::Mismatch);
  };
  EXPECT_KIND(stage(), Errc::Mismatch);
  hooks_ = {};
  const auto staged = stage();
  ASSERT_OK(staged);
  EXPECT_EQ(differences_by_rsync(source_.path, staged->path), "");
}

TEST_F(DamageTest, ARebuiltCatalogKnowsDamage) {
  write_text(source_.path / "f", noise(100'000, 1));
  ASSERT_OK(stage());
  corrupt(link() / "f");
  EXPECT_KIND(open()->verify("set", {}, kQuiet, stop_), Errc::Mismatch);
  std::filesystem::remove_all(config_.state_dir);
  auto cache = open();
  const auto rows = cache->list();
  ASSERT_OK(rows);
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_NE((*rows)[0].damage, "");
  EXPECT_FALSE(std::filesystem::exists(link()));
  const auto staged = stage(*cache);
  ASSERT_OK(staged);
  EXPECT_EQ(staged->served_from, ServedFrom::Copied);
  EXPECT_EQ(differences_by_rsync(source_.path, staged->path), "");
}

}  // namespace
}  // namespace spark::staging
