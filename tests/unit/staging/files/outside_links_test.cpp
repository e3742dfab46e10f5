// Symlinks to targets outside the copied folder: kept and reported, followed, or refused.
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "staging/files/link_follower.hpp"
#include "staging/files/walk.hpp"
#include "tests/support/failing_call.hpp"
#include "tests/unit/staging/cache/cache_fixture.hpp"
#include "tests/unit/staging/copy/copy_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

// A Hugging Face cache: the set is a snapshot with links to blobs in another folder.
class OutsideLinksTest : public CopyTest {
 protected:
  OutsideLinksTest() {
    source_ = hub_ / "snapshots/rev";
    options_.links = OutsideLinks::Copy;
    write_text(hub_ / "blobs/aaaa", noise(3'000'000, 1));
    write_text(hub_ / "blobs/bbbb", "{}");
    std::filesystem::create_directories(source_ / "tokenizer");
    link("model.bin", "../../blobs/aaaa");
    link("tokenizer/config.json", "../../../blobs/bbbb");
    link("inside", "tokenizer/config.json");
  }
  void link(const std::string& name, const std::string& target) {
    std::filesystem::create_symlink(target, source_ / name);
  }
  static bool is_file(const std::filesystem::path& path) {
    return std::filesystem::is_regular_file(std::filesystem::symlink_status(path));
  }
  std::string warning_of(const Result<CopyReport>& report) {
    return report && !report->warnings.empty() ? report->warnings.front() : "";
  }

  std::filesystem::path hub_ = folder_ / "hub";
};

TEST(LeadsOut, DependsOnlyOnTheTextOfTheLink) {
  EXPECT_TRUE(leads_out("a", "/etc/passwd"));
  EXPECT_TRUE(leads_out("a", ".."));
  EXPECT_TRUE(leads_out("a/b", "../../c"));
  EXPECT_TRUE(leads_out("a/b", "x/../../../a/c"));
  EXPECT_FALSE(leads_out("a", "b"));
  EXPECT_FALSE(leads_out("a", "."));
  EXPECT_FALSE(leads_out("a/b", "../c"));
  EXPECT_FALSE(leads_out("a/b/c", ".././/../d"));
  EXPECT_FALSE(leads_out("a", "..b/.../c"));
}

TEST_F(OutsideLinksTest, AreKeptCountedAndNamedWithTheRemedy) {
  options_.links = OutsideLinks::Keep;
  write_text(source_ / "own-1", noise(3'000'003, 1));
  write_text(source_ / "own-2", "x");
  const auto report = copy_now();
  ASSERT_OK(report);
  EXPECT_EQ(report->outside_links, 2u);
  EXPECT_NE(warning_of(report).find("2 symlinks lead out of the set"), std::string::npos);
  EXPECT_NE(warning_of(report).find("model.bin -> ../../blobs/aaaa"), std::string::npos);
  EXPECT_NE(warning_of(report).find("links: copy"), std::string::npos);
  EXPECT_EQ(warning_of(copy_now()), warning_of(report)) << "also when nothing has to be copied";
}

// 1.8 kB of 14.9 MB with status 0.
TEST_F(OutsideLinksTest, ASetWithMostOfItsDataBehindThemIsRefused) {
  options_.links = OutsideLinks::Keep;
  for (int i = 0; i < 5; ++i) write_text(source_ / ("own-" + std::to_string(i)), "x");
  const auto report = copy_now();
  EXPECT_KIND(report, Errc::Mismatch);
  EXPECT_NE(report.error().what.find("model.bin -> ../../blobs/aaaa"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(copy_) || has_partial());
}

TEST_F(OutsideLinksTest, ASetWithMostOfItsDataBehindALinkToAFolderIsRefused) {
  options_.links = OutsideLinks::Keep;
  for (const char* name : {"model.bin", "tokenizer/config.json", "inside"})
    std::filesystem::remove(source_ / name);
  for (int i = 0; i < 5; ++i) write_text(source_ / ("own-" + std::to_string(i)), "x");
  link("images", "../../blobs");
  EXPECT_KIND(copy_now(), Errc::Mismatch);
  std::filesystem::remove(source_ / "images");
  link("up", "..");  // the set is in it
  ASSERT_OK(copy_now());
}

// As the checkpoints of an unchanged tokenizer in a hub.
TEST_F(OutsideLinksTest, AFileBehindSeveralLinksCountsOnce) {
  options_.links = OutsideLinks::Keep;
  std::filesystem::remove(source_ / "model.bin");
  for (int i = 0; i < 9; ++i) link("config-" + std::to_string(i), "../../blobs/bbbb");
  write_text(source_ / "own", "{...}");
  ASSERT_OK(copy_now());
}

// As one folder of labels for each class.
TEST_F(OutsideLinksTest, AFolderBehindSeveralLinksIsWalkedOnce) {
  options_.links = OutsideLinks::Keep;
  std::filesystem::remove(source_ / "model.bin");
  for (int i = 0; i < 100; ++i) {
    write_text(source_ / ("own-" + std::to_string(i)), noise(30'000, 1));
    write_text(hub_ / "labels/more" / std::to_string(i / 2), "x");
    link("labels-" + std::to_string(i), i % 2 == 0 ? "../../labels" : "../../labels/more");
  }
  write_text(source_ / "own", noise(10'000, 1));
  const auto child = [&] {
    if (!spark::test::arm_failing_call(0, EIO).empty()) return 0;
    Tree tree = *open_tree(source_);
    // Some 30 for each link, whose way is opened name by name; the folders hold 50 files.
    return walk_source(tree, {}, OutsideLinks::Keep, stop_) && spark::test::calls_counted() < 4000 ? 0 : 1;
  };
  EXPECT_EQ(run_and_kill(child, std::chrono::seconds(60)), 0);
}

TEST_F(OutsideLinksTest, ADanglingLinkInsideTheSetIsNamed) {
  std::filesystem::remove(source_ / "tokenizer/config.json");
  link("folder-link", "tokenizer");
  link("behind-a-link", "folder-link/config.json");
  link("root", "tokenizer/..");
  const auto report = copy_now();
  ASSERT_OK(report);
  EXPECT_EQ(warning_of(report), "1 symlink leads to nothing in the set: inside -> tokenizer/config.json");
}

// A blob of a hub was deleted: status 0, and the model did not load.
TEST_F(OutsideLinksTest, ASetWithADanglingLinkForAFileOfAModelIsRefused) {
  const std::string snapshot = "models--a--b/snapshots/" + std::string(40, 'c');
  for (const std::string& name : {snapshot + "/vocab.json", std::string("plain/model.safetensors")}) {
    const auto set = folder_ / "set";
    std::filesystem::remove_all(set);
    for (int i = 0; i < 9; ++i) write_text(set / ("own-" + std::to_string(i)), "x");
    std::filesystem::create_directories((set / name).parent_path());
    std::filesystem::create_symlink("gone", set / name);
    source_ = set;
    const auto report = copy_now();
    EXPECT_KIND(report, Errc::Mismatch);
    EXPECT_NE(report.error().what.find(name + " -> gone"), std::string::npos) << report.error().what;
    options_.exclude = {"/" + name};
    ASSERT_OK(copy_now());
    std::filesystem::remove_all(copy_);
    std::filesystem::remove(folder_ / ".copy.spark-manifest");
    options_.exclude.clear();
  }
}

TEST_F(OutsideLinksTest, ASetWithMoreLinksToNothingThanFilesIsRefused) {
  options_.links = OutsideLinks::Keep;
  for (const char* target : {"gone", "../gone", "/gone/too"}) {
    const auto set = folder_ / "set";
    std::filesystem::remove_all(set);
    write_text(set / "own", noise(100'000, 1));
    source_ = set;
    link("link-1", target);
    ASSERT_OK(copy_now());
    link("link-2", target);
    EXPECT_KIND(copy_now(), Errc::Mismatch);
    std::filesystem::remove(set / "own");
    std::filesystem::remove(set / "link-2");
    EXPECT_KIND(copy_now(), Errc::Mismatch) << target;
  }
}

TEST_F(OutsideLinksTest, ALinkThatStaysInsideCausesNoWarning) {
  options_.links = OutsideLinks::Keep;
  std::filesystem::remove(source_ / "model.bin");
  std::filesystem::remove(source_ / "tokenizer/config.json");
  write_text(source_ / "tokenizer/config.json", "{}");
  const auto report = copy_now();
  ASSERT_OK(report);
  EXPECT_EQ(report->outside_links, 0u);
  EXPECT_EQ(warning_of(report), "");
}

TEST_F(OutsideLinksTest, AreRefusedBeforeTheFirstByteIfConfigured) {
  options_.links = OutsideLinks::Refuse;
  const auto report = copy_now();
  EXPECT_KIND(report, Errc::Refused);
  EXPECT_NE(report.error().what.find("model.bin -> ../../blobs/aaaa"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(copy_) || has_partial());
}

TEST_F(OutsideLinksTest, AreReplacedByTheirTargetsSoTheCopyIsSelfContained) {
  options_.verify = true;
  const auto report = copy_now();
  ASSERT_OK(report);
  EXPECT_EQ(report->copied_links, 2u);
  EXPECT_EQ(report->outside_links, 0u);
  EXPECT_EQ(warning_of(report), "");
  const std::string model = read_text(hub_ / "blobs/aaaa");
  std::filesystem::remove_all(hub_);
  EXPECT_TRUE(is_file(copy_ / "model.bin") && is_file(copy_ / "tokenizer/config.json"));
  EXPECT_EQ(read_text(copy_ / "model.bin"), model);
  EXPECT_EQ(read_text(copy_ / "inside"), "{}") << "a link inside is a link in the copy";
  EXPECT_TRUE(std::filesystem::is_symlink(copy_ / "inside"));
}

TEST_F(OutsideLinksTest, AreUnchangedWhileTheirTargetsAreUnchanged) {
  ASSERT_OK(copy_now());
  EXPECT_TRUE(copy_now()->unchanged);
  write_text(hub_ / "blobs/bbbb", "{1}");
  const auto changed = copy_now();
  ASSERT_OK(changed);
  EXPECT_FALSE(changed->unchanged);
  EXPECT_EQ(changed->unchanged_bytes, 3'000'000u) << "the other one is taken over";
  EXPECT_EQ(read_text(copy_ / "tokenizer/config.json"), "{1}");
  std::filesystem::remove(source_ / "model.bin");
  write_text(hub_ / "blobs/cccc", noise(3'000'000, 3));
  link("model.bin", "../../blobs/cccc");
  EXPECT_FALSE(copy_now()->unchanged) << "another file of the same size";
  EXPECT_EQ(read_text(copy_ / "model.bin"), read_text(hub_ / "blobs/cccc"));
}

TEST_F(OutsideLinksTest, TwoLinksToOneFileBecomeHardLinks) {
  link("again.bin", "../../blobs/aaaa");
  const auto report = copy_now();
  ASSERT_OK(report);
  EXPECT_EQ(report->bytes, 3'000'002u);
  EXPECT_EQ(std::filesystem::hard_link_count(copy_ / "again.bin"), 2u);
}

TEST_F(OutsideLinksTest, ALinkToAFolderBecomesATreeAndItsLinksAreFollowed) {
  write_text(hub_ / "shared/deep/file", "deep");
  write_text(folder_ / "elsewhere/file", "elsewhere");
  std::filesystem::create_symlink("deep/file", hub_ / "shared/inside");
  std::filesystem::create_symlink("../../elsewhere", hub_ / "shared/further");
  link("tree", "../../shared");
  const auto report = copy_now();
  ASSERT_OK(report);
  EXPECT_EQ(report->copied_links, 4u);
  EXPECT_EQ(read_text(copy_ / "tree/deep/file"), "deep");
  EXPECT_TRUE(std::filesystem::is_symlink(copy_ / "tree/inside"));
  EXPECT_EQ(read_text(copy_ / "tree/inside"), "deep");
  EXPECT_EQ(read_text(copy_ / "tree/further/file"), "elsewhere");
  EXPECT_TRUE(copy_now()->unchanged);
}

TEST_F(OutsideLinksTest, AnAbsoluteLinkOnTheSameMountIsFollowed) {
  link("absolute", (hub_ / "blobs/bbbb").native());
  ASSERT_OK(copy_now());
  EXPECT_TRUE(is_file(copy_ / "absolute"));
}

TEST_F(OutsideLinksTest, ADanglingOrCircularLinkFailsACopyOfTheirTargets) {
  link("gone", "../../blobs/gone");
  link("up", "..");
  std::filesystem::create_directories(folder_ / "one");
  std::filesystem::create_directories(folder_ / "two");
  std::filesystem::create_symlink("../two", folder_ / "one/to-two");
  std::filesystem::create_symlink("../one", folder_ / "two/to-one");
  link("round", "../../../one");
  const auto report = copy_now();
  EXPECT_KIND(report, Errc::Mismatch);
  const std::string& what = report.error().what;
  EXPECT_NE(what.find("gone -> ../../blobs/gone (No such file or directory)"), std::string::npos) << what;
  EXPECT_NE(what.find("up -> .. (a folder that holds the link)"), std::string::npos) << what;
}

TEST_F(OutsideLinksTest, ALinkToAnotherMountIsNotFollowed) {
  if (::geteuid() != 0) GTEST_SKIP() << "mounting needs root";
  const SmallTmpfs other(folder_ / "other", "size=4m");
  write_text(folder_ / "other/secret", "secret");
  const std::vector<std::string> targets{"../../../other/secret", (folder_ / "other/secret").native(),
                                         "/proc/self/environ"};
  for (const std::string& target : targets) {
    link("out", target);
    EXPECT_KIND(copy_now(), Errc::Mismatch);
    EXPECT_FALSE(std::filesystem::exists(copy_));
    std::filesystem::remove(source_ / "out");
  }
}

TEST_F(OutsideLinksTest, ATargetSwappedForALinkDuringTheCopyIsNotFollowed) {
  write_text(folder_ / "secret", "secret");
  options_.threads = 1;
  CopyHooks hooks;
  hooks.before_read = [&](const std::string& path, Bytes) {
    if (path != "model.bin") return;
    std::filesystem::remove(hub_ / "blobs/aaaa");
    std::filesystem::create_symlink(folder_ / "secret", hub_ / "blobs/aaaa");
  };
  write_text(hub_ / "blobs/aaaa", "small");  // small files are opened after the hook
  EXPECT_FALSE(copy_with(hooks, source_, copy_, options_, kQuiet, stop_));
}

TEST_F(OutsideLinksTest, TooManyLinksToFoldersAreRefused) {
  std::filesystem::create_directories(hub_ / "f");
  for (int i = 0; i < 1001; ++i) link("folder-" + std::to_string(i), "../../f");
  EXPECT_KIND(copy_now(), Errc::Refused);
}

TEST_F(OutsideLinksTest, AnInterruptedCopyOfThemIsCompletedByTheNext) {
  options_.threads = 1;
  CopyHooks hooks;
  hooks.before_read = [&](const std::string& path, Bytes) {
    if (path == "tokenizer/config.json") stop_ = true;
  };
  EXPECT_KIND(copy_with(hooks, source_, copy_, options_, kQuiet, stop_), Errc::Cancelled);
  stop_ = false;
  const auto report = copy_now();
  ASSERT_OK(report);
  EXPECT_EQ(read_text(copy_ / "model.bin"), read_text(hub_ / "blobs/aaaa"));
}

class StagedLinksTest : public CacheTest {};

TEST_F(StagedLinksTest, ASnapshotIsStagedWithItsTargetsAndServedFromTheCache) {
  write_text(folder_ / "blobs/aaaa", "weights");
  std::filesystem::create_directories(source_.path);
  std::filesystem::create_symlink("../blobs/aaaa", source_.path / "model.bin");
  write_text(source_.path / "own", "more than it");
  const auto kept = stage();
  ASSERT_OK(kept);
  EXPECT_EQ(kept->report.outside_links, 1u);
  ASSERT_EQ(kept->report.warnings.size(), 1u);
  EXPECT_EQ(stage()->report.warnings, kept->report.warnings) << "also from the cache";
  options_.links = OutsideLinks::Copy;
  const auto copied = stage();
  ASSERT_OK(copied);
  EXPECT_EQ(copied->served_from, ServedFrom::Copied);
  EXPECT_EQ(read_text(copied->path / "model.bin"), "weights");
  const auto again = stage();
  ASSERT_OK(again);
  EXPECT_EQ(again->served_from, ServedFrom::Cache);
  EXPECT_EQ(again->report.copied_links, 1u);
  ASSERT_OK(open()->verify("set", options_, kQuiet, stop_));
}

}  // namespace
}  // namespace spark::staging
