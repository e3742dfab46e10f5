#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "staging/copy/copy_with.hpp"
#include "staging/copy/lanes/monitor.hpp"
#include "staging/copy/transfer/touched.hpp"
#include "staging/files/walk.hpp"
#include "tests/unit/staging/copy/copy_fixture.hpp"

namespace spark::staging {
namespace {

using namespace test;

ino_t inode_of(const std::filesystem::path& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_ino : 0;
}

class IncrementalTest : public CopyTest {};

TEST_F(IncrementalTest, AComparisonThatWasInterruptedGoesOn) {
  for (int i = 0; i < 3; ++i) write_text(source_ / std::to_string(i), noise(100'000, i));
  ASSERT_OK(copy_now());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(::chmod((source_ / std::to_string(i)).c_str(), 0644), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(30));  // see unsettled_for()
  const auto source = open_tree(source_);
  ASSERT_OK(source);
  auto walked = walk(*source, {}, stop_);
  ASSERT_OK(walked);
  const auto destination = destination_of(copy_);
  const auto area = PartialArea::open(destination->partial(), stop_);
  ASSERT_OK(area);
  // The second one reads nothing: that would take half a minute.
  const auto began = std::chrono::steady_clock::now();
  for (const Bytes rate : {0, 10'000}) {
    options_.rate.most = rate;
    Monitor monitor(kQuiet);
    const auto compared =
        compare_touched(*source, walked->entries, *destination, *area, options_, monitor, stop_);
    ASSERT_OK(compared);
    EXPECT_EQ(std::ranges::count(compared->equal, true), 3);
    EXPECT_TRUE(compared->is_same);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::seconds(15));
}

TEST_F(IncrementalTest, ReusesUnchangedFilesAndCopiesTheRest) {
  for (int i = 0; i < 50; ++i) write_text(source_ / "d" / std::to_string(i), noise(20'000, i));
  write_text(source_ / "large", noise(20'000'000, 99));
  ASSERT_OK(copy_now());
  const ino_t changed = inode_of(copy_ / "d/7");
  write_text(source_ / "d/7", noise(30'000, 7));
  std::filesystem::remove(source_ / "d/8");
  write_text(source_ / "d/new", "new");
  const auto report = copy_now();
  ASSERT_OK(report);
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
  EXPECT_EQ(report->unchanged_bytes, 20'000'000U + 48 * 20'000U);
  EXPECT_EQ(report->resumed_bytes, 0U);
  EXPECT_NE(inode_of(copy_ / "d/7"), changed);
  const auto again = copy_now();
  ASSERT_OK(again);
  EXPECT_TRUE(again->unchanged);
}

TEST_F(IncrementalTest, AMetadataOnlyChangeIsNoticed) {
  write_text(source_ / "f", "text");
  ASSERT_OK(copy_now());
  ::chmod((source_ / "f").c_str(), 0600);
  const auto report = copy_now();
  ASSERT_OK(report);
  EXPECT_EQ(report->unchanged_bytes, 0U);
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

TEST_F(IncrementalTest, HardLinksOfTheSourceStayTogether) {
  write_text(source_ / "a", "text");
  std::filesystem::create_hard_link(source_ / "a", source_ / "b");
  write_text(source_ / "c", "1");
  ASSERT_OK(copy_now());
  write_text(source_ / "c", "2");
  ASSERT_OK(copy_now());
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
  EXPECT_EQ(inode_of(copy_ / "a"), inode_of(copy_ / "b"));
}

class ResumeTest : public CopyTest {
 protected:
  // Copies until this many chunks were read, slowly enough for the journal to be written.
  void stop_after(int chunks) {
    std::atomic<int> reads{0};
    CopyHooks hooks;
    hooks.before_read = [&](const std::string&, Bytes) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      if (++reads == chunks) stop_ = true;
    };
    EXPECT_KIND(copy_with(hooks, source_, copy_, options_, {}, stop_), Errc::Cancelled);
    stop_ = false;
  }
};

TEST_F(ResumeTest, ResumesInTheMiddleOfAFile) {
  for (const IoKind io : {IoKind::Auto, IoKind::Threads}) {
    std::filesystem::remove_all(copy_);
    options_.io = io;
    options_.depth = 2;
    options_.chunk = 4 * kMiB;
    write_text(source_ / "large", noise(120'000'000, static_cast<std::uint64_t>(io)));
    stop_after(24);
    const auto report = copy_now();
    ASSERT_OK(report);
    EXPECT_GE(report->resumed_bytes, 40'000'000U);
    EXPECT_LT(report->resumed_bytes, 120'000'000U);
    EXPECT_EQ(differences_by_rsync(source_, copy_), "");
    ASSERT_OK(copy_now());
    std::filesystem::remove(folder_ / ".copy.spark-manifest");
  }
}

// Its copy began again, and was killed then.
TEST_F(ResumeTest, AFileThatShrankWhileItWasCopiedIsCopiedByTheNextAttempt) {
  options_.threads = options_.depth = 1;
  options_.chunk = 4 * kMiB;
  write_text(source_ / "f", noise(24 * kMiB, 1));
  bool is_small = false;
  CopyHooks hooks;
  hooks.before_read = [&](const std::string&, Bytes offset) {
    if (is_small && offset == 0) stop_ = true;
    if (offset < 12 * kMiB || std::exchange(is_small, true)) return;
    write_text(source_ / "f", noise(900'000, 2));
  };
  EXPECT_KIND(copy_with(hooks, source_, copy_, options_, {}, stop_), Errc::Cancelled);
  stop_ = false;
  ASSERT_TRUE(is_small);
  EXPECT_GT(std::filesystem::file_size(folder_ / ".copy.spark-partial/data/f"), 900'000U);
  ASSERT_OK(copy_now());
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

// An overlay like in containers: one call may not flush all of it.
class Overlay {
 public:
  explicit Overlay(const std::filesystem::path& folder) : merged_(folder / "merged") {
    for (const char* name : {"lower", "upper", "work", "merged"})
      std::filesystem::create_directories(folder / name);
    const std::string options = "lowerdir=" + (folder / "lower").native() +
                                ",upperdir=" + (folder / "upper").native() +
                                ",workdir=" + (folder / "work").native();
    EXPECT_EQ(::mount("overlay", merged_.c_str(), "overlay", 0, options.c_str()), 0) << std::strerror(errno);
  }
  ~Overlay() { ::umount2(merged_.c_str(), MNT_DETACH); }
  Overlay(const Overlay&) = delete;
  Overlay& operator=(const Overlay&) = delete;
  const std::filesystem::path& path() const { return merged_; }

 private:
  std::filesystem::path merged_;
};

// Killed before its journal said so. Programs that read it in a live view have it open.
TEST_F(ResumeTest, AFileThatWasCompletedIsNotWrittenAgain) {
  options_.depth = 2;
  options_.chunk = 4 * kMiB;
  write_text(source_ / "large", noise(112 * kMiB, 1));
  stop_after(24);
  const auto partial = folder_ / ".copy.spark-partial/data/large";
  EXPECT_GT(std::filesystem::file_size(partial), 112 * kMiB);
  std::filesystem::resize_file(partial, 112 * kMiB);
  const UniqueFd reader(::open(partial.c_str(), O_RDONLY | O_CLOEXEC));
  const ino_t completed = inode_of(partial);
  ASSERT_NE(completed, 0U);
  ASSERT_OK(copy_now());
  EXPECT_NE(inode_of(copy_ / "large"), completed);
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

TEST_F(ResumeTest, ResumesInTheMiddleOfAFileIfEachFileIsFlushedSeparately) {
  const Overlay overlay(folder_ / "overlay");
  copy_ = overlay.path() / "copy";
  options_.depth = 2;
  options_.chunk = 4 * kMiB;
  write_text(source_ / "large", noise(120'000'000, 1));
  stop_after(24);
  const auto report = copy_now();
  ASSERT_OK(report);
  EXPECT_GE(report->resumed_bytes, 8'000'000U);
  EXPECT_LT(report->resumed_bytes, 120'000'000U);
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

TEST_F(ResumeTest, AFileThatChangedMeanwhileIsNotResumed) {
  options_.depth = 2;
  options_.chunk = 4 * kMiB;
  write_text(source_ / "large", noise(120'000'000, 1));
  stop_after(24);
  const auto mtime = std::filesystem::last_write_time(source_ / "large");
  write_text(source_ / "large", noise(120'000'000, 2));
  std::filesystem::last_write_time(source_ / "large", mtime);  // only its ctime shows the change
  const auto report = copy_now();
  ASSERT_OK(report);
  EXPECT_EQ(report->resumed_bytes, 0U);
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

// Power was lost when the journal named the file's new version, and before its old content was gone: a hole
// of the new version isn't written.
TEST_F(ResumeTest, AFileWithoutAKnownPieceIsMadeAnew) {
  options_.depth = 2;
  options_.chunk = 4 * kMiB;
  write_text(source_ / "sparse", noise(112 * kMiB, 1));
  std::filesystem::resize_file(source_ / "sparse", 144 * kMiB);
  stop_after(24);
  const auto partial = folder_ / ".copy.spark-partial/data/sparse";
  const Bytes size = std::filesystem::file_size(partial);
  ASSERT_GT(size, 144 * kMiB);
  std::ofstream(partial, std::ios::binary | std::ios::in) << std::string(size, '\xff');
  const auto journal = folder_ / ".copy.spark-partial/journal";
  std::istringstream lines(read_text(journal));
  std::string kept;
  bool has_begun = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" P ") == std::string::npos) kept += line + "\n";
    has_begun |= line.find(" S ") != std::string::npos;
  }
  ASSERT_TRUE(has_begun);
  write_text(journal, kept);
  const auto report = copy_now();
  ASSERT_OK(report);
  EXPECT_EQ(report->resumed_bytes, 0U);
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

TEST_F(ResumeTest, FilesSharedWithAnEarlierGenerationAreNeverWritten) {
  write_text(source_ / "same", noise(2'000'000, 1));
  write_text(source_ / "f", "1");
  ASSERT_OK(copy_now());
  const std::filesystem::path kept = folder_ / "kept";
  std::filesystem::create_hard_link(copy_ / "same", kept);
  write_text(source_ / "f", noise(50'000'000, 3));
  options_.depth = 1;
  stop_after(3);
  write_text(source_ / "same", noise(2'000'000, 2));  // the partial copy has a hard link to the old file
  ASSERT_OK(copy_now());
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
  EXPECT_EQ(read_text(kept), noise(2'000'000, 1));
}

TEST_F(ResumeTest, FilesReusedByAnInterruptedAttemptStillCountAsUnchanged) {
  for (int i = 0; i < 20; ++i) write_text(source_ / "d" / std::to_string(i), noise(20'000, i));
  write_text(source_ / "large", noise(50'000'000, 1));
  ASSERT_OK(copy_now());
  write_text(source_ / "large", noise(60'000'000, 2));
  options_.depth = 1;
  stop_after(4);
  const auto report = copy_now();
  ASSERT_OK(report);
  EXPECT_EQ(report->unchanged_bytes, 20 * 20'000U);
  EXPECT_LE(report->resumed_bytes, 60'000'000U);
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

TEST_F(ResumeTest, AReadOnlyPartialFileIsResumed) {
  options_.depth = 2;
  options_.chunk = 4 * kMiB;
  write_text(source_ / "large", noise(120'000'000, 1));
  ::chmod((source_ / "large").c_str(), 0444);
  for (const auto& path : {folder_.path(), source_, source_ / "large"})
    ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  ASSERT_TRUE(as_nobody([this] {
    stop_after(24);
    // Simulates a kill after it set the permissions, and before it wrote that to the journal.
    return ::chmod((folder_ / ".copy.spark-partial/data/large").c_str(), 0444) == 0;
  }));
  EXPECT_TRUE(as_nobody([this] {
    const auto report = copy_now();
    if (!report) std::fputs((report.error().message() + "\n").c_str(), stderr);
    return report && report->resumed_bytes >= 40'000'000U;
  }));
  EXPECT_EQ(differences_by_rsync(source_, copy_), "");
}

}  // namespace
}  // namespace spark::staging
