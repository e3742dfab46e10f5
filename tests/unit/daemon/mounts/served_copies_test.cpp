// Real mounts, in a separate mount namespace.
#include "daemon/mounts/served_copies.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>

#include "base/file.hpp"
#include "base/kernel/mount_table.hpp"
#include "base/text.hpp"
#include "daemon/mounts/users.hpp"
#include "tests/support/failing_call.hpp"
#include "tests/support/temp_folder.hpp"

namespace spark::mounts {
namespace {

// Runs it in a child; failures there are printed and give a nonzero exit status.
pid_t start_child(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  body();
  std::fflush(stdout);
  ::_exit(testing::Test::HasFailure() ? 1 : 0);
}
bool succeeded(pid_t child) {
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

class ServedCopiesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "mounting needs root";
    std::filesystem::create_directories(copies_ / "set/1");
    std::filesystem::create_directories(folder_ / "cache/.partial");
    std::ofstream(copies_ / "set/1/file") << "right";
  }
  // Runs it in a mount namespace with propagating mounts, as on a host with systemd.
  void on_a_host(const std::function<void()>& body, unsigned long propagation = MS_SHARED) {
    EXPECT_TRUE(succeeded(start_child([&] {
      ASSERT_EQ(::unshare(CLONE_NEWNS), 0);
      ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
      ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | propagation, nullptr), 0);
      body();
    })));
  }
  std::ptrdiff_t mounts_of(const std::filesystem::path& path) const {
    const auto lines = split(*read_file("/proc/self/mountinfo"), '\n');
    return std::ranges::count_if(lines, [&](const std::string& line) {
      return line.find(" " + path.native() + " ") != std::string::npos;
    });
  }
  static int open_error(const std::filesystem::path& path, int flags) {
    const UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC, 0644));
    return fd ? 0 : errno;
  }

  test::TempFolder folder_;
  std::filesystem::path private_ = folder_ / "cache/.partial", copies_ = folder_ / "cache/data",
                        file_ = copies_ / "set/1/file";
};

TEST_F(ServedCopiesTest, EvenRootCannotChangeACopy) {
  on_a_host([&] {
    EXPECT_EQ(serve_read_only(copies_, {}, private_).value(), Change::Done);
    EXPECT_EQ(open_error(file_, O_RDONLY), 0);
    EXPECT_EQ(open_error(file_, O_RDWR), EROFS);
    EXPECT_EQ(open_error(file_, O_WRONLY | O_TRUNC), EROFS);
    EXPECT_EQ(open_error(copies_ / "set/1/train.idx", O_WRONLY | O_CREAT), EROFS);
    EXPECT_EQ(::unlink(file_.c_str()), -1);
    EXPECT_EQ(::chmod(file_.c_str(), 0600), -1);
    EXPECT_EQ(::setxattr(file_.c_str(), "user.a", "b", 1, 0), -1);
    EXPECT_EQ(::rename((copies_ / "set/1").c_str(), (copies_ / "set/2").c_str()), -1);
    EXPECT_EQ(errno, EROFS);
  });
}

TEST_F(ServedCopiesTest, CopiesAreServedWithoutSetuidAndDevicesUnlessTheConfigurationAllowsThem) {
  on_a_host([&] {
    const auto flags = [&] {
      struct statvfs system {};
      EXPECT_EQ(::statvfs(copies_.c_str(), &system), 0);
      return system.f_flag & (ST_RDONLY | ST_NOSUID | ST_NODEV);
    };
    EXPECT_EQ(serve_read_only(copies_, {}, private_).value(), Change::Done);
    EXPECT_EQ(flags(), ST_RDONLY | ST_NOSUID | ST_NODEV);
    EXPECT_EQ(serve_read_only(copies_, {"suid"}, private_).value(), Change::Done);
    EXPECT_EQ(flags(), ST_RDONLY | ST_NODEV) << "also a mount of an earlier version";
    EXPECT_EQ(serve_read_only(copies_, {"dev"}, private_).value(), Change::Done);
    EXPECT_EQ(flags(), ST_RDONLY | ST_NOSUID);
    EXPECT_EQ(serve_read_only(copies_, {"dev"}, private_).value(), Change::AlreadyThere);
    EXPECT_EQ(mounts_of(copies_), 1);
  });
}

// Any local user could otherwise stop all staging with `flock`.
TEST_F(ServedCopiesTest, ALockOfAnotherUserOnTheCacheDoesNotHoldItUp) {
  on_a_host([&] {
    const UniqueFd cache(::open((folder_ / "cache").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_EQ(::flock(cache.get(), LOCK_SH), 0);
    EXPECT_EQ(serve_read_only(copies_, {}, private_).value(), Change::Done);
  });
}

TEST_F(ServedCopiesTest, TheCopiesAreMountedOnceDespiteConcurrentRequests) {
  on_a_host([&] {
    std::vector<pid_t> workers;
    for (int i = 0; i < 8; ++i)
      workers.push_back(start_child([&] { EXPECT_TRUE(serve_read_only(copies_, {}, private_)); }));
    for (const pid_t worker : workers) EXPECT_TRUE(succeeded(worker));
    EXPECT_EQ(serve_read_only(copies_, {}, private_).value(), Change::AlreadyThere);
    EXPECT_EQ(mounts_of(copies_), 1);
  });
}

TEST_F(ServedCopiesTest, AWorkerPublishesAndEvictsWhileCopiesStayReadOnlyForOthers) {
  on_a_host([&] {
    ASSERT_TRUE(serve_read_only(copies_, {}, private_));
    EXPECT_TRUE(succeeded(start_child([&] {
      ASSERT_TRUE(see_writable(copies_));
      std::filesystem::create_directories(folder_ / "cache/.partial/new");
      std::ofstream(folder_ / "cache/.partial/new/file") << "new";
      const auto published = copies_ / "set/2";
      EXPECT_EQ(::rename((folder_ / "cache/.partial/new").c_str(), published.c_str()), 0) << errno;
      EXPECT_EQ(::link(file_.c_str(), (published / "shared").c_str()), 0) << errno;
      EXPECT_EQ(::unlink(file_.c_str()), 0) << errno;
    })));
    EXPECT_EQ(open_error(copies_ / "set/2/file", O_RDONLY), 0);
    EXPECT_EQ(open_error(file_, O_RDONLY), ENOENT);
    EXPECT_EQ(open_error(copies_ / "set/2/file", O_RDWR), EROFS);
    EXPECT_EQ(mounts_of(copies_), 1);
  });
}

// Else it works below the read-only mount: it marks copies as evicted, and can move none (EXDEV).
TEST_F(ServedCopiesTest, AFolderThatTheDriveDoesNotShowIsNotTakenForWritable) {
  on_a_host([&] {
    ASSERT_TRUE(serve_read_only(copies_, {}, private_));
    constexpr int kCalls[] = {SYS_statx};
    const auto lost = [](const test::FileCall&) -> std::optional<long> { return -EIO; };
    ASSERT_EQ(test::intercept_calls(kCalls, lost), "");
    EXPECT_FALSE(see_writable(copies_));
    EXPECT_FALSE(serve_read_only(copies_, {}, private_));
    EXPECT_EQ(mounts_of(copies_), 1) << "no second one over the first";
  });
}

// It is detached, which needs nothing of the drive.
TEST_F(ServedCopiesTest, TheMountOfADriveThatIsGoneIsTakenOff) {
  on_a_host([&] {
    ASSERT_TRUE(serve_read_only(copies_, {}, private_));
    const std::filesystem::path other = folder_ / "other";
    std::filesystem::create_directory(other);
    ASSERT_TRUE(serve_read_only(other, {}, private_));
    constexpr int kCalls[] = {SYS_statx};
    const auto lost = [](const test::FileCall&) -> std::optional<long> { return -EIO; };
    ASSERT_EQ(test::intercept_calls(kCalls, lost), "");
    const auto stopped = stop_serving_read_only(copies_);
    ASSERT_TRUE(stopped) << stopped.error().message();
    EXPECT_EQ(*stopped, Change::Done);
    EXPECT_EQ(mounts_of(copies_), 0);
    EXPECT_EQ(stop_serving_read_only(copies_).value(), Change::AlreadyThere);
    EXPECT_EQ(mounts_of(other), 1);
  });
}

TEST_F(ServedCopiesTest, AWorkersMountNamespaceHoldsAVolumeOnlyWhileTheWorkerReadsIt) {
  on_a_host([&] {
    const std::filesystem::path volume = folder_ / "volume";
    std::filesystem::create_directories(volume);
    ASSERT_EQ(::mount("none", volume.c_str(), "tmpfs", 0, nullptr), 0);
    std::ofstream(volume / "file") << "x";
    ASSERT_TRUE(serve_read_only(copies_, {}, private_));
    int begun[2], done[2];
    ASSERT_EQ(::pipe(begun) + ::pipe(done), 0);
    const pid_t worker = start_child([&] {
      const auto host = see_writable(copies_);
      ASSERT_TRUE(host);
      char byte = 0;
      {
        const UniqueFd holds(::openat(host->get(), volume.c_str() + 1, O_PATH | O_DIRECTORY));
        const UniqueFd reads(::open((volume / "file").c_str(), O_RDONLY));
        EXPECT_TRUE(holds && reads);
        EXPECT_EQ(::write(begun[1], "x", 1), 1);
        EXPECT_EQ(::read(done[0], &byte, 1), 1);
      }
      EXPECT_EQ(::write(begun[1], "x", 1), 1);
      EXPECT_EQ(::read(done[0], &byte, 1), 1);
      EXPECT_EQ(mounts_of(volume), 0) << "it went with the host's";
    });
    char byte = 0;
    ASSERT_EQ(::read(begun[0], &byte, 1), 1);
    EXPECT_EQ(::umount2(volume.c_str(), 0), -1);
    EXPECT_EQ(errno, EBUSY);
    const auto users = users_of({}, *mounted_at(*read_mount_table({}), volume));
    ASSERT_EQ(users.size(), 1u);
    EXPECT_EQ(users[0].pid, worker);
    EXPECT_EQ(::write(done[1], "x", 1), 1);
    ASSERT_EQ(::read(begun[0], &byte, 1), 1);
    EXPECT_EQ(::umount2(volume.c_str(), 0), 0) << errno;
    EXPECT_EQ(::write(done[1], "x", 1), 1);
    EXPECT_TRUE(succeeded(worker));
  });
}

TEST_F(ServedCopiesTest, ServingReadOnlyIsUnsupportedWithoutMountPropagation) {
  const auto refused = [&] {
    const auto served = serve_read_only(copies_, {}, private_);
    ASSERT_FALSE(served);
    EXPECT_EQ(served.error().kind, Errc::Unsupported);
    EXPECT_EQ(mounts_of(copies_), 0);
    EXPECT_TRUE(see_writable(copies_));
    EXPECT_EQ(open_error(file_, O_RDWR), 0);
  };
  on_a_host(refused, MS_PRIVATE);
}

TEST_F(ServedCopiesTest, ServingReadOnlyWithoutPermissionToMountFailsWithTheReason) {
  on_a_host([&] {
    ASSERT_EQ(::chmod(folder_.path().c_str(), 0755) + ::setresuid(65534, 65534, 65534), 0);
    const auto served = serve_read_only(copies_, {}, private_);
    ASSERT_FALSE(served);
    EXPECT_EQ(served.error().kind, Errc::Unsupported);
    EXPECT_NE(served.error().what.find("Operation not permitted"), std::string::npos) << served.error().what;
  });
}

TEST_F(ServedCopiesTest, RemovingTheMountMakesCopiesWritableAndReadersContinue) {
  on_a_host([&] {
    ASSERT_TRUE(serve_read_only(copies_, {}, private_));
    const UniqueFd job(::open(file_.c_str(), O_RDONLY | O_CLOEXEC));
    EXPECT_EQ(stop_serving_read_only(copies_).value(), Change::Done);
    EXPECT_EQ(stop_serving_read_only(copies_).value(), Change::AlreadyThere);
    EXPECT_EQ(open_error(file_, O_RDWR), 0);
    char text[6] = {};
    EXPECT_EQ(::read(job.get(), text, 5), 5);
    EXPECT_STREQ(text, "right");
  });
}

}  // namespace
}  // namespace spark::mounts
