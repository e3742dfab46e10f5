#include "tests/unit/staging/random_tree.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <system_error>
#include <vector>

#include "base/file.hpp"
#include "tests/unit/staging/support.hpp"

namespace spark::staging::test {
namespace {

using Path = std::filesystem::path;

constexpr std::array<std::size_t, 19> kSizes = {
    0,      1,      511,     512,     513,     4095,    4096,    4097,    65535,          65537,
    131072, 131073, 1048576, 2097151, 2097153, 8388607, 8388608, 8388609, 2 * 8388608 + 3};
constexpr std::size_t kSmallSizes = 12;  // the first of them: large files are less frequent, since disks are
                                         // slow

// Version 2, then {tag, permissions, id}: the owner, user 1000, the group, the mask, others.
constexpr std::array<unsigned char, 44> kAcl = {
    2, 0, 0,   0,   1,   0,   6,    0, 255, 255, 255, 255, 2,   0,   6,    0, 232, 3, 0,   0,   4,   0,
    4, 0, 255, 255, 255, 255, 0x10, 0, 6,   0,   255, 255, 255, 255, 0x20, 0, 4,   0, 255, 255, 255, 255};

class Random {
 public:
  explicit Random(std::uint64_t seed) : random_(seed) {}
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }
  bool one_in(std::uint64_t n) { return below(n) == 0; }
  const Path& any(const std::vector<Path>& paths) { return paths[below(paths.size())]; }

  std::string name() {
    const std::size_t length = one_in(6) ? 255 : 1 + below(12);
    std::string name;
    while (name.size() < length) {
      const char c = static_cast<char>(one_in(2) ? 'a' + below(26) : 1 + below(255));
      if (c != '/') name += c;
    }
    return name == "." || name == ".." ? "x" + name : name;
  }

  std::string content() {
    return noise(kSizes[below(one_in(4) ? kSizes.size() : kSmallSizes)], below(1'000'000'000));
  }

 private:
  std::mt19937_64 random_;
};

// Mode, owner, time, attributes.
void dress(const Path& path, bool is_folder, Random& random) {
  const bool is_root = ::geteuid() == 0;
  if (is_root) {
    const auto user = static_cast<uid_t>(random.below(3)) * 1000;
    EXPECT_EQ(::lchown(path.c_str(), user, static_cast<gid_t>(random.below(3)) * 100), 0);
  }
  // Only root can read files without owner permissions, and keep set-user-ID.
  const std::uint64_t kept = is_root ? 07777 : 01777, needed = is_root ? 0400 : 0500;
  EXPECT_EQ(::chmod(path.c_str(), static_cast<mode_t>((random.below(010000) & kept) | needed)), 0);
  if (random.one_in(3)) ::setxattr(path.c_str(), "user.colour", "blue", random.below(5), 0);
  if (random.one_in(6)) ::setxattr(path.c_str(), "system.posix_acl_access", kAcl.data(), kAcl.size(), 0);
  if (is_folder && random.one_in(4))
    ::setxattr(path.c_str(), "system.posix_acl_default", kAcl.data(), kAcl.size(), 0);
}

void date(const Path& path, Random& random) {
  const auto seconds = static_cast<time_t>(random.below(4'000'000'000)) - 1'000'000'000;
  const timespec times[2] = {{0, UTIME_OMIT}, {seconds, static_cast<long>(random.below(1'000'000'000))}};
  EXPECT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW), 0);
}

// The file may have been removed by an earlier change, so errors are ignored.
void link_to(const Path& file, const Path& link) {
  std::error_code gone;
  std::filesystem::create_hard_link(file, link, gone);
}

void truncate(const Path& file, std::uintmax_t bytes) {
  std::error_code gone;
  std::filesystem::resize_file(file, bytes, gone);
}

class Tree {
 public:
  Tree(Path root, std::uint64_t seed) : root_(std::move(root)), random_(seed) {}

  void make() {
    std::filesystem::create_directories(root_);
    folders_ = {root_};
    for (int i = 0; i < 8; ++i) make_folder();
    for (int i = 0; i < 40; ++i) make_entry();
    for (const Path& file : files_) dress(file, false, random_);
    for (const Path& file : files_) date(file, random_);
    for (const Path& link : symlinks_) date(link, random_);
    for (auto folder = folders_.rbegin(); folder != folders_.rend(); ++folder) {
      dress(*folder, true, random_);
      date(*folder, random_);
    }
  }

  void change() {
    find_all();
    for (std::uint64_t i = random_.below(12) + 1; i > 0; --i) change_one();
  }

 private:
  Path root_;
  Random random_;
  std::vector<Path> folders_, files_, symlinks_;

  Path new_path() { return random_.any(folders_) / random_.name(); }

  void find_all() {
    folders_ = {root_};
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root_)) {
      auto& kind = entry.is_symlink() ? symlinks_ : entry.is_directory() ? folders_ : files_;
      kind.push_back(entry.path());
    }
    for (auto* paths : {&folders_, &files_, &symlinks_}) std::ranges::sort(*paths);
  }

  void make_folder() {
    const Path folder = new_path();
    if (::mkdir(folder.c_str(), 0755) == 0) folders_.push_back(folder);
  }

  void make_entry() {
    const Path path = new_path();
    switch (random_.below(8)) {
      case 0:
        return make_symlink(path, random_.name().substr(0, 200));
      case 1:
        return make_symlink(path, "/etc/hostname");
      case 2:
        if (!files_.empty()) link_to(random_.any(files_), path);
        return;
      case 3:
        return make_sparse(path);
      default:
        write_text(path, random_.content());
        files_.push_back(path);
    }
  }

  void make_symlink(const Path& path, const Path& target) {
    if (::symlink(target.c_str(), path.c_str()) == 0) symlinks_.push_back(path);
  }

  void make_sparse(const Path& path) {
    const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0644));
    if (!fd) return;
    for (std::uint64_t i = random_.below(4); i > 0; --i) {
      const std::string stretch = noise(1 + random_.below(70'000), random_.below(1000));
      const auto offset = static_cast<off_t>(random_.below(10'000'000));
      EXPECT_EQ(::pwrite(fd.get(), stretch.data(), stretch.size(), offset),
                static_cast<ssize_t>(stretch.size()));
    }
    EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(10'000'000 + random_.below(10'000'000))), 0);
    files_.push_back(path);
  }

  // If an earlier change removed the path, nothing is changed.
  void change_one() {
    const Path file = random_.any(files_), folder = random_.any(folders_);
    switch (random_.below(11)) {
      case 0:
        if (std::filesystem::exists(file)) write_text(file, random_.content());
        return;
      case 1:
        write_text(root_ / ".new", random_.content());
        ::rename((root_ / ".new").c_str(), file.c_str());
        return;
      case 2:
        truncate(file, random_.below(100'000));
        return;
      case 3:
        ::rename(file.c_str(), new_path().c_str());
        return;
      case 4:
        ::unlink(file.c_str());
        return;
      case 5:
        link_to(file, new_path());
        return;
      case 6:
        if (std::filesystem::exists(file)) dress(file, false, random_);
        return;
      case 7:
        return dress(folder, true, random_);
      case 8:
        return date(folder, random_);
      case 9:
        if (!symlinks_.empty()) date(random_.any(symlinks_), random_);
        return;
      default:
        return make_entry();
    }
  }
};

}  // namespace

void make_random_tree(const std::filesystem::path& root, std::uint64_t seed) {
  Tree(root, seed).make();
}

void change_random_tree(const std::filesystem::path& root, std::uint64_t seed) {
  Tree(root, seed).change();
}

}  // namespace spark::staging::test
