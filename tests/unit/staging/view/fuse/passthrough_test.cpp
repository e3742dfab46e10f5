// What the kernel reads from the copy itself: on Linux 6.9 or later.
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>

#include "staging/files/io/page_cache.hpp"
#include "tests/unit/staging/view/fuse/fuse_session_fixture.hpp"

namespace spark::staging::test {
namespace {

constexpr int kRight = 0, kWrong = 200, kNoMap = 201;

// Of its file, by read() and mmap(). Returns kRight, kWrong, kNoMap or errno.
int compare(int fd, const std::string& right) {
  std::string got(right.size(), '\0');
  for (std::size_t at = 0; at < got.size();) {
    const ssize_t read = ::pread(fd, got.data() + at, got.size() - at, static_cast<off_t>(at));
    if (read <= 0) return read < 0 ? errno : kWrong;
    at += static_cast<std::size_t>(read);
  }
  char beyond = 0;
  if (got != right || ::pread(fd, &beyond, 1, static_cast<off_t>(right.size())) != 0) return kWrong;
  void* mapped = ::mmap(nullptr, right.size(), PROT_READ, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) return kNoMap;
  const bool is_right = std::memcmp(mapped, right.data(), right.size()) == 0;
  ::munmap(mapped, right.size());
  return is_right ? kRight : kWrong;
}

// On its own file system, as an overlay can't lie on another one.
class Overlay {
 public:
  explicit Overlay(const std::filesystem::path& folder) : disk_(folder / "disk"), merged_(folder / "merged") {
    for (const auto& path : {disk_, merged_}) std::filesystem::create_directories(path);
    EXPECT_EQ(::mount("none", disk_.c_str(), "tmpfs", 0, nullptr), 0);
    for (const char* name : {"lower", "upper", "work"}) std::filesystem::create_directories(disk_ / name);
  }
  ~Overlay() {
    ::umount2(merged_.c_str(), MNT_DETACH);
    ::umount2(disk_.c_str(), MNT_DETACH);
  }
  Overlay(const Overlay&) = delete;
  Overlay& operator=(const Overlay&) = delete;
  const std::filesystem::path& path() const { return merged_; }
  std::filesystem::path empty() const { return disk_ / "lower"; }
  // Returns errno, or 0.
  int mount_on(const std::filesystem::path& lower) const {
    const std::string options = "lowerdir=" + lower.native() + ",upperdir=" + (disk_ / "upper").native() +
                                ",workdir=" + (disk_ / "work").native();
    return ::mount("overlay", merged_.c_str(), "overlay", 0, options.c_str()) == 0 ? 0 : errno;
  }

 private:
  std::filesystem::path disk_, merged_;
};

class PassthroughTest : public FuseSessionTest {
 protected:
  struct Holder {
    pid_t process = 0;
    UniqueFd opened, goes_on;  // pipes
  };
  std::string right_ = noise(20 * kMiB, 1);

  // A file that is complete at once, and one that is not until goes_on_.
  void begin_half() {
    options_.threads = options_.depth = 1;
    options_.io = IoKind::Threads;
    write_text(source_ / "a/large", right_);
    write_text(source_ / "b/slow", noise(40 * kMiB, 2));
    hooks_.before_read = [this](const std::string& path, Bytes offset) {
      while (path == "b/slow" && offset > 8 * kMiB && !stop_ && !goes_on_) std::this_thread::sleep_for(5ms);
    };
    begin_copy();
  }
  void await_large() const {
    const auto map = ViewMap::open(place_);
    ASSERT_OK(map);
    const ViewTree tree = tree_of(**map);
    const ViewNode& large = tree.node(find(tree, "a/large"));
    for (std::uint64_t unit = 0; unit < unit_count(large.entry.size); ++unit) {
      while ((*map)->unit(large.first_unit + unit) != UnitState::Here) std::this_thread::sleep_for(10ms);
    }
  }

  // A process that opens the file, and compares it with right_, by this descriptor, once it may go on.
  Holder hold(const std::filesystem::path& file, bool maps = false) {
    int opened[2], goes_on[2];
    EXPECT_EQ(::pipe2(opened, O_CLOEXEC) + ::pipe2(goes_on, O_CLOEXEC), 0);
    Holder holder;
    holder.process = start_reader([&] {
      ::alarm(kHangs);
      ::close(goes_on[1]);
      const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
      if (fd < 0) return errno;
      if (maps && ::mmap(nullptr, right_.size(), PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED) return kNoMap;
      char byte = 0;
      (void)!::write(opened[1], &byte, 1);
      (void)!::read(goes_on[0], &byte, 1);
      return compare(fd, right_);
    });
    ::close(opened[1]);
    ::close(goes_on[0]);
    holder.opened.reset(opened[0]);
    holder.goes_on.reset(goes_on[1]);
    pollfd ready{opened[0], POLLIN, 0};
    EXPECT_EQ(::poll(&ready, 1, kHangs * 1000), 1);
    return holder;
  }
  int result_of(Holder& holder) {
    EXPECT_EQ(::write(holder.goes_on.get(), "", 1), 1);
    const int status = end_of(holder.process);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
};

// No process answers: so the kernel has read the file.
TEST_F(PassthroughTest, AFileThatIsCompleteIsReadWithoutTheProcess) {
  begin_half();
  ASSERT_TRUE(keeper_.mount());
  await_large();
  Holder reader = hold(view_ / "a/large");
  ASSERT_TRUE(keeper_.kill_server());
  EXPECT_EQ(result_of(reader), kRight);
  ASSERT_TRUE(keeper_.start_next_server());
  goes_on_ = true;
  ASSERT_OK(copying_.get());
  right_ = noise(40 * kMiB, 2);
  Holder later = hold(view_ / "b/slow");
  ASSERT_TRUE(keeper_.kill_server());
  EXPECT_EQ(result_of(later), kRight);
}

// An open of another kind than that of the others would fail.
TEST_F(PassthroughTest, TheNextProcessAnswersOpensAsTheOneBefore) {
  begin_half();
  ASSERT_TRUE(keeper_.mount());
  Holder early = hold(view_ / "b/slow", true);
  await_large();
  Holder first = hold(view_ / "a/large");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(keeper_.kill_server());
    ASSERT_TRUE(keeper_.start_next_server());
    Holder second = hold(view_ / "a/large");
    EXPECT_EQ(result_of(second), kRight);
  }
  goes_on_ = true;
  ASSERT_OK(copying_.get());
  right_ = noise(40 * kMiB, 2);
  Holder beside = hold(view_ / "b/slow");
  EXPECT_EQ(result_of(beside), kRight);
  right_ = noise(20 * kMiB, 1);
  Holder last = hold(view_ / "a/large");
  ASSERT_TRUE(keeper_.kill_server());
  EXPECT_EQ(result_of(first), kRight);
  EXPECT_EQ(result_of(last), kRight);
}

// The map of a descriptor from before stays right beside opens that come later.
TEST_F(PassthroughTest, AnEarlyDescriptorStaysRight) {
  right_ = noise(40 * kMiB, 1);
  write_text(source_ / "large", right_);
  slow_down();
  begin_copy();
  ASSERT_TRUE(keeper_.mount());
  Holder early = hold(view_ / "large", true);
  ASSERT_OK(copying_.get());
  Holder beside = hold(view_ / "large", true);
  EXPECT_EQ(result_of(early), kRight);
  EXPECT_EQ(result_of(beside), kRight);
  std::this_thread::sleep_for(100ms);  // a close is not waited for
  Holder late = hold(view_ / "large");
  ASSERT_TRUE(keeper_.kill_server());
  EXPECT_EQ(result_of(late), kRight);
}

// They would stay beside those of the copy. Who has a file open from before reads it again.
TEST_F(PassthroughTest, ThePagesOfTheViewCanBeDropped) {
  write_text(source_ / "large", right_);
  slow_down();
  begin_copy();
  ASSERT_TRUE(keeper_.mount());
  const pid_t early = start_reader([&] {
    ::alarm(kHangs);
    const int fd = ::open((view_ / "large").c_str(), O_RDONLY | O_CLOEXEC);
    if (const int read = compare(fd, right_); read != kRight) return read;
    while (cached_bytes(fd, right_.size()) > 0) std::this_thread::sleep_for(10ms);
    return compare(fd, right_);
  });
  ASSERT_OK(copying_.get());
  for (siginfo_t ended{}; ended.si_pid == 0; std::this_thread::sleep_for(50ms)) {
    ASSERT_TRUE(keeper_.begin_to_drop_pages());
    ::waitid(P_PID, static_cast<id_t>(early), &ended, WEXITED | WNOHANG | WNOWAIT);
  }
  EXPECT_EQ(end_of(early), 0);
}

TEST_F(PassthroughTest, ACopyOnAnOverlayIsReadThroughTheView) {
  const Overlay overlay(folder_.path());
  ASSERT_EQ(overlay.mount_on(overlay.empty()), 0);
  copy_ = overlay.path() / "copy";
  write_text(source_ / "large", right_);
  begin_copy();
  ASSERT_TRUE(keeper_.mount());
  ASSERT_OK(copying_.get());
  Holder reader = hold(view_ / "large", true);
  Holder other = hold(view_ / "large");
  EXPECT_EQ(result_of(reader), kRight);
  EXPECT_EQ(result_of(other), kRight);
}

TEST_F(PassthroughTest, AnOverlayOnTheViewGoesOnWorking) {
  const Overlay overlay(folder_.path());
  write_text(source_ / "large", right_);
  slow_down();
  begin_copy();
  ASSERT_TRUE(keeper_.mount());
  EXPECT_EQ(end_of(start_reader([&] { return overlay.mount_on(view_); })), 0);
  Holder early = hold(overlay.path() / "large", true);
  EXPECT_EQ(result_of(early), kRight);
  ASSERT_OK(copying_.get());
  Holder late = hold(overlay.path() / "large", true);
  EXPECT_EQ(result_of(late), kRight);
}

}  // namespace
}  // namespace spark::staging::test
