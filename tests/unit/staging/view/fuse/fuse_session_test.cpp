// A view on the kernel's FUSE: as root, with /dev/fuse.
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>

#include "tests/unit/staging/random_tree.hpp"
#include "tests/unit/staging/view/fuse/fuse_session_fixture.hpp"

namespace spark::staging::test {
namespace {

using namespace std::chrono_literals;

// Random reads by read() and mmap() while it is copied. Returns the number that were wrong, or -1.
int read_at_random(const std::filesystem::path& file, const std::string& right, unsigned seed, int reads) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return -1;
  void* mapped = ::mmap(nullptr, right.size(), PROT_READ, MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED) return -1;
  std::mt19937_64 random(seed);
  std::string got(128 * kKiB, '\0');
  int wrong = 0;
  for (int i = 0; i < reads; ++i) {
    const std::size_t at = random() % (right.size() - got.size());
    if (i % 2 == 0) {
      std::memcpy(got.data(), static_cast<const char*>(mapped) + at, got.size());
    } else if (::pread(fd.get(), got.data(), got.size(), static_cast<off_t>(at)) !=
               static_cast<ssize_t>(got.size())) {
      return -1;
    }
    wrong += right.compare(at, got.size(), got) == 0 ? 0 : 1;
  }
  ::munmap(mapped, right.size());
  return wrong;
}

TEST_F(FuseSessionTest, ReadersGetRightBytesWhileItIsCopied) {
  const std::string right = noise(100 * kMiB, 1);
  write_text(source_ / "shards/large", right);
  write_text(source_ / "small", "small");
  std::filesystem::create_symlink("shards/large", source_ / "link");
  slow_down();
  begin_copy();
  ASSERT_TRUE(keeper_.mount());
  const auto large = view_ / "shards/large";
  for (unsigned i = 0; i < 4; ++i) start_reader([&] { return read_at_random(large, right, i, 60); });
  EXPECT_EQ(read_text(view_ / "small"), "small");
  while (!readers_.empty()) EXPECT_EQ(end_of(readers_.front()), 0);
  EXPECT_EQ(read_text(view_ / "link"), right);
  ASSERT_OK(copying_.get());
  EXPECT_EQ(differences_by_rsync(view_, copy_), "");
  const UniqueFd direct(::open((view_ / "shards/large").c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  const IoBuffer buffer(kMiB);
  ASSERT_EQ(::pread(direct.get(), buffer.data(), kMiB, kMiB), static_cast<ssize_t>(kMiB));
  EXPECT_EQ(std::memcmp(buffer.data(), right.data() + kMiB, kMiB), 0);
}

TEST_F(FuseSessionTest, ChangesNothing) {
  write_text(source_ / "a/small", "small");
  begin_copy();
  ASSERT_TRUE(keeper_.mount());
  EXPECT_EQ(::open((view_ / "a/small").c_str(), O_RDWR), -1);
  EXPECT_EQ(errno, EROFS);
  EXPECT_EQ(::mkdir((view_ / "a/new").c_str(), 0700), -1);
  EXPECT_EQ(errno, EROFS);
  EXPECT_EQ(::open((view_ / "a/none").c_str(), O_RDONLY), -1);
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(FuseSessionTest, ShowsARandomTreeAsItsSourceIs) {
  make_random_tree(source_, 11);
  drop_acls_of_folders(source_);
  begin_copy();
  ASSERT_OK(copying_.get());
  ASSERT_TRUE(keeper_.mount());
  for (const auto& entry : std::filesystem::recursive_directory_iterator(source_)) {
    const auto shown = view_ / entry.path().lexically_relative(source_);
    struct stat there {
    }, here{};
    ASSERT_EQ(::lstat(entry.path().c_str(), &there), 0);
    if (!S_ISDIR(there.st_mode) && !S_ISREG(there.st_mode) && !S_ISLNK(there.st_mode)) continue;  // skipped
    ASSERT_EQ(::lstat(shown.c_str(), &here), 0) << shown;
    EXPECT_EQ(here.st_mode, there.st_mode) << shown;
    EXPECT_EQ(here.st_uid, there.st_uid) << shown;
    if (S_ISDIR(here.st_mode)) continue;
    EXPECT_EQ(here.st_size, there.st_size) << shown;
    EXPECT_EQ(here.st_nlink, there.st_nlink) << shown;
    if (!S_ISLNK(here.st_mode)) continue;
    EXPECT_EQ(std::filesystem::read_symlink(shown), std::filesystem::read_symlink(entry.path()));
  }
}

TEST_F(FuseSessionTest, AReadOfWhatWillNotComeFails) {
  write_text(source_ / "large", noise(40 * kMiB, 1));
  hooks_.before_read = [this](const std::string&, Bytes offset) {
    while (offset > 20 * kMiB && !stop_) std::this_thread::sleep_for(5ms);
  };
  begin_copy();
  ASSERT_TRUE(keeper_.mount());
  const auto large = view_ / "large";
  const pid_t reader = start_reader([&] {
    const UniqueFd fd(::open(large.c_str(), O_RDONLY | O_CLOEXEC));
    char byte = 0;
    return ::pread(fd.get(), &byte, 1, 39 * kMiB) == 1 ? 0 : errno;
  });
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(::waitpid(reader, nullptr, WNOHANG), 0);
  auto map = ViewMap::open(place_);
  ASSERT_OK(map);
  (*map)->set_failed("no space");
  const int status = end_of(reader);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), EIO);
}

// The connection outlives the process, and the kernel sends its unanswered requests again.
TEST_F(FuseSessionTest, AKilledServerIsNotNoticedByReaders) {
  const std::string right = noise(80 * kMiB, 1);
  write_text(source_ / "large", right);
  slow_down();
  begin_copy();
  ASSERT_TRUE(keeper_.mount());
  const auto large = view_ / "large";
  for (unsigned i = 0; i < 4; ++i) start_reader([&] { return read_at_random(large, right, i, 100); });
  for (int kill = 0; kill < 5; ++kill) {
    std::this_thread::sleep_for(100ms);
    ASSERT_TRUE(keeper_.kill_server());
    ASSERT_TRUE(keeper_.start_next_server());
  }
  while (!readers_.empty()) EXPECT_EQ(end_of(readers_.front()), 0);
  ASSERT_OK(copying_.get());
}

TEST_F(FuseSessionTest, AWaitingReaderCanBeKilledAndIsNotInterrupted) {
  write_text(source_ / "large", noise(40 * kMiB, 1));
  hooks_.before_read = [this](const std::string&, Bytes offset) {
    while (offset > 20 * kMiB && !stop_ && !goes_on_) std::this_thread::sleep_for(5ms);
  };
  begin_copy();
  ASSERT_TRUE(keeper_.mount());
  const auto large = view_ / "large";
  const auto start = [&](int flags) {
    return start_reader([&large, flags] {
      struct sigaction ignored {};
      ignored.sa_handler = [](int) {};
      ::sigaction(SIGALRM, &ignored, nullptr);
      const int fd = ::open(large.c_str(), O_RDONLY | flags);
      void* into = ::aligned_alloc(4096, 4096);
      return ::pread(fd, into, 4096, 39 * kMiB) == 4096 ? 0 : errno;
    });
  };
  const pid_t killed = start(0), killed_direct = start(O_DIRECT);
  const pid_t alarmed = start(0), alarmed_direct = start(O_DIRECT);
  std::this_thread::sleep_for(300ms);
  for (const pid_t pid : {alarmed, alarmed_direct}) ::kill(pid, SIGALRM);
  for (const pid_t pid : {killed, killed_direct}) {
    ::kill(pid, SIGKILL);
    EXPECT_TRUE(WIFSIGNALED(end_of(pid)));
  }
  std::this_thread::sleep_for(300ms);
  goes_on_ = true;
  for (const pid_t pid : {alarmed, alarmed_direct})
    EXPECT_EQ(end_of(pid), 0) << "no program expects EINTR from a file";
}

// The process that drops them waits for a read whose server has stopped, where SIGKILL does not reach it.
TEST_F(FuseSessionTest, DroppingPagesKeepsNoReaderOnceAllProcessesAreKilled) {
  write_text(source_ / "large", noise(40 * kMiB, 1));
  hooks_.before_read = [this](const std::string&, Bytes offset) {
    while (offset > 20 * kMiB && !stop_) std::this_thread::sleep_for(5ms);
  };
  begin_copy();
  ASSERT_TRUE(keeper_.mount());
  struct stat info {};
  ASSERT_EQ(::stat(view_.c_str(), &info), 0);
  const UniqueFd abort = open_abort_file(minor(info.st_dev));
  ASSERT_TRUE(abort);
  const auto large = view_ / "large";
  const Gate opened, goes_on;
  const pid_t reader = start_reader([&] {
    const UniqueFd fd(::open(large.c_str(), O_RDONLY | O_CLOEXEC));
    char byte = 0;
    opened.open();
    goes_on.await();
    return ::pread(fd.get(), &byte, 1, kMiB) == 1 ? 0 : errno;
  });
  opened.await();
  ASSERT_TRUE(keeper_.stop_server());
  goes_on.open();
  std::this_thread::sleep_for(300ms);  // it waits for the stopped server by then
  ASSERT_TRUE(keeper_.begin_to_drop_pages());
  std::this_thread::sleep_for(300ms);
  keeper_.end();
  const std::jthread deadline([&](const std::stop_token& over) {
    for (int i = 0; i < 10 * kHangs && !over.stop_requested(); ++i) std::this_thread::sleep_for(100ms);
    if (over.stop_requested()) return;
    ADD_FAILURE() << "the reader hangs";
    EXPECT_EQ(::write(abort.get(), "1", 1), 1);
  });
  const int status = end_of(reader);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_NE(WEXITSTATUS(status), 0);
}

TEST_F(FuseSessionTest, TheServerEndsWithTheLastUser) {
  write_text(source_ / "small", "small");
  begin_copy();
  ASSERT_TRUE(keeper_.mount());
  UniqueFd file(::open((view_ / "small").c_str(), O_RDONLY | O_CLOEXEC));
  char byte = 0;
  ASSERT_EQ(::pread(file.get(), &byte, 1, 0), 1) << std::strerror(errno);
  ASSERT_EQ(::umount2(view_.c_str(), MNT_DETACH), 0);
  EXPECT_EQ(::pread(file.get(), &byte, 1, 1), 1) << "a file that was open goes on working";
  file.reset();
  EXPECT_EQ(keeper_.wait_for_server(), 0);
}

}  // namespace
}  // namespace spark::staging::test
