#include "staging/cache/cache.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "tests/unit/staging/cache/cache_fixture.hpp"
#include "tests/unit/staging/random_tree.hpp"

namespace spark::staging {
namespace {

using namespace test;

constexpr Bytes kFile = 25 * 4096, kFolder = 4096;  // allocated on disk

TEST_F(CacheTest, StagesOnceThenServesFromTheCache) {
  make_random_tree(source_.path, 77);
  auto cache = open();
  const auto first = stage(*cache);
  ASSERT_OK(first);
  EXPECT_EQ(first->served_from, ServedFrom::Copied);
  EXPECT_EQ(differences_by_rsync(source_.path, first->path), "");
  EXPECT_EQ(std::filesystem::canonical(link()), std::filesystem::canonical(first->path));
  const auto second = stage(*cache);
  ASSERT_OK(second);
  EXPECT_EQ(second->served_from, ServedFrom::Cache);
  EXPECT_EQ(second->path, first->path);
  EXPECT_EQ(second->report.hash, first->report.hash);
  const auto third = stage();  // as after a restart of the daemon
  ASSERT_OK(third);
  EXPECT_EQ(third->served_from, ServedFrom::Cache);
  const auto rows = cache->list();
  ASSERT_OK(rows);
  ASSERT_EQ(rows->size(), 1U);
  EXPECT_EQ((*rows)[0].name, "set");
  EXPECT_EQ((*rows)[0].bytes, first->report.bytes);
  EXPECT_EQ((*rows)[0].path, first->path);
  ASSERT_OK(cache->verify("set", {}, kQuiet, stop_));
}

TEST_F(CacheTest, AnUnmountedMountPointIsNotStaged) {
  struct stat here {};
  write_text(source_.path / "f", "one");
  ASSERT_EQ(::stat(source_.path.c_str(), &here), 0);
  source_.device = here.st_dev + 1;
  EXPECT_KIND(stage(), Errc::Unavailable);
  EXPECT_FALSE(std::filesystem::exists(link()));
  source_.device = here.st_dev;
  ASSERT_OK(stage());
}

TEST_F(CacheTest, ACachedOnlyRequestCopiesNothing) {
  write_text(source_.path / "f", "one");
  source_.only_cached = true;
  EXPECT_KIND(stage(), Errc::NotFound);
  source_.only_cached = false;
  ASSERT_OK(stage());
  source_.only_cached = true;
  ASSERT_OK(stage());
  write_text(source_.path / "f", "changed");
  EXPECT_KIND(stage(), Errc::NotFound);
  EXPECT_EQ(read_text(link() / "f"), "one");
}

TEST_F(CacheTest, AChangedSourceBecomesANewGenerationAndTheOldOneIsDeleted) {
  write_text(source_.path / "f", "one");
  auto cache = open();
  const auto first = stage(*cache);
  ASSERT_OK(first);
  write_text(source_.path / "f", "two!");
  const auto second = stage(*cache);
  ASSERT_OK(second);
  EXPECT_GT(second->generation, first->generation);
  EXPECT_EQ(read_text(link() / "f"), "two!");
  EXPECT_FALSE(std::filesystem::exists(first->path));
  EXPECT_EQ(cache->list()->size(), 1U);
}

TEST_F(CacheTest, ALeasedGenerationStaysUntilItsLeaseEnds) {
  write_text(source_.path / "f", "one");
  auto cache = open();
  const auto first = stage(*cache);
  ASSERT_OK(first);
  Lease lease;
  lease.id = "l1";
  lease.dataset = "set";
  lease.generation = first->generation;
  lease.holder = "slurm job 12";
  ASSERT_OK(catalog()->add_lease(lease));
  const auto refused = cache->evict("set");
  EXPECT_KIND(refused, Errc::Refused);
  EXPECT_NE(refused.error().what.find("slurm job 12"), std::string::npos);
  write_text(source_.path / "f", "two!");
  ASSERT_OK(stage(*cache));
  EXPECT_EQ(read_text(first->path / "f"), "one");
  ASSERT_OK(catalog()->remove_lease("l1"));
  ASSERT_OK(stage(*cache));
  EXPECT_FALSE(std::filesystem::exists(first->path));
}

TEST_F(CacheTest, EvictFreesEverythingAndGenerationNumbersContinue) {
  write_text(source_.path / "f", noise(kFile, 1));
  auto cache = open();
  const auto first = stage(*cache);
  ASSERT_OK(first);
  const auto freed = cache->evict("set");
  ASSERT_OK(freed);
  EXPECT_EQ(*freed, kFile + kFolder);
  EXPECT_TRUE(cache->list()->empty());
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(link())));
  EXPECT_FALSE(std::filesystem::exists(config_.path / "data/set"));
  EXPECT_TRUE(std::filesystem::is_empty(config_.path / ".trash"));
  EXPECT_KIND(cache->evict("set"), Errc::NotFound);
  EXPECT_KIND(cache->verify("set", {}, kQuiet, stop_), Errc::NotFound);
  const auto again = stage(*cache);
  ASSERT_OK(again);
  EXPECT_GT(again->generation, first->generation);
}

TEST_F(CacheTest, ACopyOfOneFileHasAPathThatEndsWithItsNameUntilItIsEvicted) {
  source_ = {"nas:run7/last.pt", folder_ / "last.pt", {}};
  const auto named = [&](const char* generation) {
    return config_.path / ".named" / folder_name(source_.dataset) / generation / "last.pt";
  };
  auto cache = open();
  write_text(source_.path, "one");
  ASSERT_OK(stage(*cache));
  EXPECT_EQ(read_text(named("1")), "one");
  std::filesystem::remove_all(config_.path / ".named/" / folder_name(source_.dataset));
  ASSERT_OK(stage(*cache));
  EXPECT_EQ(read_text(named("1")), "one") << "served from a cache of an earlier version";
  write_text(source_.path, "two!");
  ASSERT_OK(stage(*cache));
  EXPECT_EQ(read_text(named("2")), "two!");
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(named("1"))));
  ASSERT_OK(cache->evict(source_.dataset));
  EXPECT_TRUE(std::filesystem::is_empty(config_.path / ".named"));
}

TEST_F(CacheTest, ACorruptedByteIsFoundAndThatCopyIsNoLongerServed) {
  write_text(source_.path / "sub/weights", noise(20'000'000, 1));
  write_text(source_.path / "other", "x");
  auto cache = open();
  const auto first = stage(*cache);
  ASSERT_OK(first);
  corrupt(first->path / "sub/weights");
  const auto verified = cache->verify("set", {}, kQuiet, stop_);
  EXPECT_KIND(verified, Errc::Mismatch);
  EXPECT_NE(verified.error().what.find("sub/weights has other content"), std::string::npos)
      << verified.error().what;
  EXPECT_NE(cache->list()->front().damage, "");
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(link())))
      << "it names what is damaged";
  const auto again = stage(*cache);
  ASSERT_OK(again);
  EXPECT_EQ(again->served_from, ServedFrom::Copied);
  EXPECT_EQ(cache->list()->front().damage, "");
  EXPECT_EQ(std::filesystem::canonical(link()), std::filesystem::canonical(again->path));
  ASSERT_OK(cache->verify("set", {}, kQuiet, stop_));
}

TEST_F(CacheTest, ACopyOfAFileThatDiffersFromItsPublishedDigestStaysAndTheFileIsNamed) {
  constexpr const char* kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  write_text(source_.path / "SHA256SUMS", std::string(kAbc) + "  model\n");
  write_text(source_.path / "model", "abc");
  auto cache = open();
  ASSERT_OK(stage(*cache));
  CopyOptions with_digests = options_;
  with_digests.sha256 = true;
  const auto as_published = cache->verify("set", with_digests, kQuiet, stop_);
  ASSERT_OK(as_published);
  EXPECT_EQ(as_published->sha256_files, 1U);
  write_text(source_.path / "model", "abd");
  const auto staged = stage(*cache);
  ASSERT_OK(staged);
  const auto verified = cache->verify("set", with_digests, kQuiet, stop_);
  EXPECT_KIND(verified, Errc::Mismatch);
  EXPECT_NE(verified.error().what.find("model does not match SHA256SUMS"), std::string::npos)
      << verified.error().what;
  EXPECT_EQ(cache->list()->front().damage, "") << "it is as its source";
  EXPECT_EQ(stage(*cache)->served_from, ServedFrom::Cache);
}

TEST_F(CacheTest, ASourceThatDiffersFromWhatStageOutPublishedThereIsNotStaged) {
  write_text(folder_ / "job/shard", noise(100'000, 1));
  std::filesystem::create_directories(folder_ / "volume");
  ASSERT_OK(copy(folder_ / "job", folder_ / "volume/step-1", options_, kQuiet, stop_));
  source_.path = folder_ / "volume/step-1";
  ASSERT_OK(stage());
  ASSERT_OK(open()->evict("set"));
  corrupt(source_.path / "shard");
  const auto staged = stage();
  EXPECT_KIND(staged, Errc::Mismatch);
  EXPECT_NE(staged.error().what.find("no longer has the content that stage-out published"), std::string::npos)
      << staged.error().what;
  EXPECT_TRUE(open()->list()->empty());
}

TEST_F(CacheTest, VerifyNamesMissingAddedAndDifferingEntries) {
  for (const char* name : {"a", "b", "c", "d"}) write_text(source_.path / name, "x");
  std::filesystem::create_symlink("a", source_.path / "link");
  auto cache = open();
  const auto staged = stage(*cache);
  ASSERT_OK(staged);
  std::filesystem::remove(staged->path / "a");
  write_text(staged->path / "b2", "x");
  std::filesystem::permissions(staged->path / "c", std::filesystem::perms::owner_read);
  std::filesystem::remove(staged->path / "link");
  std::filesystem::create_symlink("b", staged->path / "link");
  const auto verified = cache->verify("set", {}, kQuiet, stop_);
  EXPECT_KIND(verified, Errc::Mismatch);
  for (const char* part :
       {"a is missing", "b2 was added", "c has other permissions", "link points elsewhere"}) {
    EXPECT_NE(verified.error().what.find(part), std::string::npos) << verified.error().what;
  }
}

TEST_F(CacheTest, ACopyWithAFileGoneIsNotServed) {
  write_text(source_.path / "f", "x");
  auto cache = open();
  const auto first = stage(*cache);
  ASSERT_OK(first);
  std::filesystem::remove(first->path / "f");
  const auto again = stage(*cache);
  ASSERT_OK(again);
  EXPECT_EQ(again->served_from, ServedFrom::Copied);
  EXPECT_EQ(read_text(link() / "f"), "x");
}

TEST_F(CacheTest, HostileDatasetNamesStayInside) {
  write_text(source_.path / "f", "x");
  auto cache = open();
  for (const char* name : {"..", "../../up", "/", ".hidden", "data", "a\nb", "vol:x/y", "\xff\xfe"}) {
    source_.dataset = name;
    const auto staged = stage(*cache);
    ASSERT_OK(staged);
    EXPECT_EQ(read_text(staged->path / "f"), "x");
    EXPECT_EQ(std::filesystem::canonical(staged->path), staged->path.lexically_normal());
    EXPECT_TRUE(staged->path.native().starts_with((config_.path / "data").native() + "/"));
    EXPECT_EQ(read_text(link() / "f"), "x");
  }
  EXPECT_EQ(cache->list()->size(), 8U);
}

TEST_F(CacheTest, ALostCatalogIsRebuiltFromTheManifests) {
  write_text(source_.path / "f", "x");
  source_.dataset =
      "vol:a\xff"
      "b";
  ASSERT_OK(stage());
  std::filesystem::remove_all(config_.state_dir);
  auto cache = open();
  ASSERT_EQ(cache->list()->size(), 1U);
  EXPECT_EQ(cache->list()->front().name, source_.dataset);
  EXPECT_EQ(stage(*cache)->served_from, ServedFrom::Cache);
}

TEST_F(CacheTest, AnUnmountedCacheFolderIsUnavailableAndKeepsItsCatalog) {
  write_text(source_.path / "f", "x");
  ASSERT_OK(stage());
  std::filesystem::rename(config_.path, folder_ / "away");
  EXPECT_KIND(open_cache_with(hooks_, config_, clock_), Errc::Unavailable);
  std::filesystem::create_directories(config_.path);
  EXPECT_KIND(open_cache_with(hooks_, config_, clock_), Errc::Unavailable);
  std::filesystem::remove_all(config_.path);
  std::filesystem::rename(folder_ / "away", config_.path);
  EXPECT_EQ(stage()->served_from, ServedFrom::Cache);
}

TEST_F(CacheTest, ASourceThatContainsTheCacheIsInvalid) {
  source_.path = folder_.path();
  EXPECT_KIND(stage(), Errc::Invalid);
}

TEST_F(CacheTest, ConcurrentProcessesShareOneCopy) {
  for (int i = 0; i < 50; ++i) write_text(source_.path / std::to_string(i), noise(100'000, 7));
  { open(); }
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto staged = stage();
      ::_exit(!staged ? 9 : staged->served_from == ServedFrom::Copied ? 1 : 0);
    }
    children.push_back(child);
  }
  int copied = 0;
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_NE(WEXITSTATUS(status), 9);
    copied += WEXITSTATUS(status);
  }
  EXPECT_EQ(copied, 1);
}

TEST_F(CacheTest, EvictingADatasetDuringItsStagingIsRefused) {
  write_text(source_.path / "f", noise(2'000'000, 1));
  hooks_.room.lock = {};
  auto cache = open();
  std::promise<void> begun, asked;
  hooks_.before_read = [&](const std::string&, Bytes) {
    begun.set_value();
    asked.get_future().wait();
  };
  std::jthread staging([&] { EXPECT_TRUE(stage()); });
  begun.get_future().wait();
  EXPECT_KIND(cache->evict("set"), Errc::Refused);
  asked.set_value();
}

}  // namespace
}  // namespace spark::staging
