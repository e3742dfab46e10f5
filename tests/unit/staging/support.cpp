#include "support.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

#include "base/child.hpp"
#include "base/file.hpp"
#include "staging/tree.hpp"

namespace spark::staging::test {
namespace {

constexpr std::array<std::size_t, 17> kSizes = {
    0,     1,       511,     512,     513,     4095,    4096,    4097,           65535,
    65537, 1048576, 2097151, 2097153, 8388607, 8388608, 8388609, 2 * 8388608 + 3};

constexpr std::size_t kSmallSizes = 10;  // the first of them: large files are rarer, disks slow

class TreeMaker {
 public:
  TreeMaker(std::filesystem::path root, std::uint64_t seed) : root_(std::move(root)), random_(seed) {}

  void make() {
    std::filesystem::create_directories(root_);
    folders_ = {root_};
    for (int i = 0; i < 8; ++i) {
      const auto folder = new_path();
      if (::mkdir(folder.c_str(), 0755) == 0) folders_.push_back(folder);
    }
    for (int i = 0; i < 40; ++i) make_entry();
    for (const auto& file : files_) {
      if (one_in(3)) ::setxattr(file.c_str(), "user.colour", "blue", 4, 0);
      dress(file);
    }
    for (auto folder = folders_.rbegin(); folder != folders_.rend(); ++folder) {
      if (one_in(2)) ::setxattr(folder->c_str(), "user.kind", "box", 3, 0);
      dress(*folder);
    }
  }

 private:
  std::filesystem::path root_;
  std::mt19937_64 random_;
  std::vector<std::filesystem::path> folders_, files_;

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

  std::string new_name() {
    const std::size_t length = one_in(6) ? 255 : 1 + below(12);
    std::string name;
    while (name.size() < length) {
      const char c = static_cast<char>(one_in(2) ? 'a' + below(26) : 1 + below(255));
      if (c != '/') name += c;
    }
    return name == "." || name == ".." ? "x" + name : name;
  }

  std::filesystem::path new_path() { return folders_[below(folders_.size())] / new_name(); }

  void make_entry() {
    const auto path = new_path();
    switch (below(8)) {
      case 0:
        ::symlink(new_name().substr(0, 200).c_str(), path.c_str());
        return;
      case 1:
        ::symlink("/etc/hostname", path.c_str());
        return;
      case 2:
        if (!files_.empty()) ::link(files_[below(files_.size())].c_str(), path.c_str());
        return;
      case 3:
        make_sparse(path);
        return;
      default:
        write_text(path, noise(kSizes[below(one_in(4) ? kSizes.size() : kSmallSizes)], random_()));
        files_.push_back(path);
    }
  }

  void make_sparse(const std::filesystem::path& path) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0644));
    if (!fd) return;
    for (std::uint64_t i = below(4); i > 0; --i) {
      const std::string stretch = noise(1 + below(70'000), random_());
      const auto offset = static_cast<off_t>(below(10'000'000));
      EXPECT_EQ(::pwrite(fd.get(), stretch.data(), stretch.size(), offset),
                static_cast<ssize_t>(stretch.size()));
    }
    EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(10'000'000 + below(10'000'000))), 0);
    files_.push_back(path);
  }

  void dress(const std::filesystem::path& path) {
    if (::geteuid() == 0) {
      EXPECT_EQ(
          ::lchown(path.c_str(), static_cast<uid_t>(below(3)) * 1000, static_cast<gid_t>(below(3)) * 100), 0);
    }
    // Only root reads what is closed to its owner, and keeps set-user-ID.
    const std::uint64_t kept = ::geteuid() == 0 ? 07777 : 01777, needed = ::geteuid() == 0 ? 0400 : 0500;
    EXPECT_EQ(::chmod(path.c_str(), static_cast<mode_t>((below(010000) & kept) | needed)), 0);
    const timespec times[2] = {
        {0, UTIME_OMIT},
        {static_cast<time_t>(below(4'000'000'000)) - 1'000'000'000, static_cast<long>(below(1'000'000'000))}};
    EXPECT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
};

}  // namespace

TempFolder::TempFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "spark-staging-XXXXXX").native();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = name;
}

TempFolder::~TempFolder() {
  const auto removed = remove_tree(path_.parent_path(), path_.filename());  // opens closed folders
  if (!removed) ADD_FAILURE() << "left behind: " << removed.error().message();
}

SmallTmpfs::SmallTmpfs(std::filesystem::path folder, const std::string& options, unsigned long flags)
    : folder_(std::move(folder)) {
  std::filesystem::create_directories(folder_);
  if (::mount("tmpfs", folder_.c_str(), "tmpfs", flags, options.c_str()) != 0) {
    throw std::runtime_error("mounting a tmpfs failed");
  }
}

SmallTmpfs::~SmallTmpfs() {
  ::umount2(folder_.c_str(), MNT_DETACH);
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string noise(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string bytes;
  bytes.reserve(size + 8);
  while (bytes.size() < size) {
    const std::uint64_t number = random();
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  bytes.resize(size);
  return bytes;
}

void make_random_tree(const std::filesystem::path& root, std::uint64_t seed) {
  TreeMaker(root, seed).make();
}

std::string differences_by_rsync(const std::filesystem::path& source, const std::filesystem::path& copy) {
  const std::string end = std::filesystem::is_directory(source) ? "/" : "";
  const auto run = run_child({"rsync", "-aHAXn", "--checksum", "--delete", "--itemize-changes",
                              source.native() + end, copy.native() + end},
                             std::chrono::minutes(2));
  if (!run) return run.error().message();
  return run->exit_status == 0 ? run->out : "rsync failed: " + run->err;
}

Bytes allocated(const std::filesystem::path& path) {
  struct stat info {};
  EXPECT_EQ(::stat(path.c_str(), &info), 0);
  return static_cast<Bytes>(info.st_blocks) * 512;
}

int run_and_kill(const std::function<int()>& work, std::chrono::microseconds delay) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(work());
  const auto end = std::chrono::steady_clock::now() + delay;
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= end) ::kill(child, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return exit_status_of(status);
}

}  // namespace spark::staging::test
