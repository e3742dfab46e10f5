#include "fleet/serve/published.hpp"

#include <sys/mount.h>
#include <unistd.h>

#include <fstream>

#include "fleet/protocol/set_id.hpp"
#include "staging/manifest/manifest_reader.hpp"
#include "tests/support/skip.hpp"
#include "tests/unit/fleet/serve/host.hpp"

namespace spark::fleet {
namespace {

struct Unmount {
  void operator()(const char* folder) const { ::umount2(folder, MNT_DETACH); }
};

class PublishedTest : public testing::Test {
 protected:
  spark::test::TempFolder folder_;
  staging::CacheConfig config_{folder_ / "cache", folder_ / "state", 0, 0};
  SystemClock clock_;
  staging::Source source_{"set", folder_ / "source", {}};

  void stage(const std::string& dataset, const std::string& content) {
    source_.dataset = dataset;
    source_.path = folder_ / ("source-" + dataset);
    std::filesystem::create_directories(source_.path);
    std::ofstream(source_.path / "f") << content;
    const auto cache = staging::Cache::open(config_, clock_);
    ASSERT_TRUE(cache) << cache.error().message();
    const auto staged = (*cache)->stage(source_, {}, {}, StopFlag{false});
    ASSERT_TRUE(staged) << staged.error().message();
  }
  std::filesystem::path manifest_of(const std::string& dataset) const {
    return staging::CacheFolder(config_.path).place(dataset, 1).manifest();
  }
  std::string set_of(const std::string& dataset) const {
    SetNaming naming({"", "folder " + dataset});
    auto manifest = staging::ManifestReader::open(manifest_of(dataset));
    while (const auto entry = manifest->next()) naming.add(*entry);
    return naming.id();
  }
};

// Whatever it was when the copies were made.
TEST_F(PublishedTest, TheConfigurationSaysWhetherAFolderIsExchanged) {
  source_.origin = "folder set";
  stage("set", "one");
  source_.origin = "";
  stage("other", "four");
  PublishedCopies published(config_.path, config_.state_dir, {"other"});
  published.look();
  EXPECT_FALSE(published.find(set_of("set")));
  EXPECT_TRUE(published.find(set_of("other")));
}

// Equal content is the same wherever it is from.
TEST_F(PublishedTest, EachCopyIsOfferedByItsContentAlsoThatOfAFolderThatIsNotExchanged) {
  stage("set", "one");
  PublishedCopies published(config_.path, config_.state_dir, {});
  published.look();
  const std::string hash(published.list().front().at("hash").as_string());
  SetNaming naming({"", content_origin(hash)});
  auto manifest = staging::ManifestReader::open(manifest_of("set"));
  while (const auto entry = manifest->next()) naming.add(*entry);
  const auto found = published.find(naming.id());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->units, 1u);
  EXPECT_EQ(published.find_content(hash)->manifest, manifest_of("set"));
  EXPECT_FALSE(published.find_content(std::string(32, 'a')));
}

// As after the source's files were touched.
TEST_F(PublishedTest, AReplacedManifestNamesAnotherSet) {
  stage("set", "one");
  stage("other", "four");
  PublishedCopies published(config_.path, config_.state_dir, {"set"});
  published.look();
  const std::string before = set_of("set");
  EXPECT_TRUE(published.find(before));
  std::filesystem::rename(manifest_of("other"), manifest_of("set"));
  published.look();
  EXPECT_FALSE(published.find(before));
  EXPECT_TRUE(published.find(set_of("set")));
}

// While this process has it open: the daemon makes a new one.
TEST_F(PublishedTest, ACatalogThatWasMovedAwayIsNotReadAnyMore) {
  stage("set", "one");
  PublishedCopies published(config_.path, config_.state_dir, {"set", "other"});
  published.look();
  EXPECT_TRUE(published.find(set_of("set")));
  std::filesystem::rename(config_.state_dir / "catalog.sqlite", config_.state_dir / "old.sqlite");
  stage("other", "four");
  published.look();
  EXPECT_TRUE(published.find(set_of("other")));
  const auto catalog = staging::Catalog::open(config_.state_dir);
  ASSERT_TRUE(catalog) << catalog.error().message();
  EXPECT_TRUE((*catalog)->is_current());
}

// It would be an empty one; the daemon makes a new one from the cache's folder.
TEST_F(PublishedTest, ACatalogThatWasMovedAwayIsNotMadeHere) {
  stage("set", "one");
  PublishedCopies published(config_.path, config_.state_dir, {"set"});
  published.look();
  std::filesystem::rename(config_.state_dir / "catalog.sqlite", config_.state_dir / "old.sqlite");
  published.look();
  EXPECT_FALSE(std::filesystem::exists(config_.state_dir / "catalog.sqlite"));
  EXPECT_NE(published.trouble().find("catalog.sqlite: it is gone"), std::string::npos) << published.trouble();
  EXPECT_TRUE(published.find(set_of("set"))) << "it is still there";
}

// Then there is no space for an index that processes share.
TEST_F(PublishedTest, AFullStateFolderDoesNotKeepTheCatalogFromOthers) {
  if (::geteuid() != 0) SPARK_SKIP("only root can mount");
  std::filesystem::create_directories(config_.state_dir);
  ASSERT_EQ(::mount("tmpfs", config_.state_dir.c_str(), "tmpfs", 0, "size=1m"), 0);
  const std::unique_ptr<const char, Unmount> mounted(config_.state_dir.c_str());
  stage("set", "one");
  {
    std::ofstream fill(config_.state_dir / "fill");
    const std::string block(4096, 'x');
    while (fill << block << std::flush) {
    }
  }
  PublishedCopies published(config_.path, config_.state_dir, {"set"});
  published.look();
  EXPECT_TRUE(published.find(set_of("set")));
  const auto other = staging::Catalog::open(config_.state_dir);
  ASSERT_TRUE(other) << other.error().message();
  EXPECT_TRUE((*other)->generations());
}

}  // namespace
}  // namespace spark::fleet
