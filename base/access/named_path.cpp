#include "base/access/named_path.hpp"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <map>
#include <vector>

#include "base/file_system.hpp"
#include "base/text.hpp"

namespace spark {
namespace {

constexpr unsigned kMostLinks = 40;  // as in the kernel
constexpr uid_t kNobody = 65534;
constexpr gid_t kNoGroup = 65534;

// Whether this process could read what is closed to others: root outside of user namespaces, with its
// capabilities. Elsewhere the kernel's own checks are enough.
bool has_roots_rights() {
  static const bool reads_all = [] {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> sets{};
    constexpr std::uint32_t kReads = 1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH;
    const bool is_known = ::syscall(SYS_capget, &header, sets.data()) == 0;
    const auto map = read_line_file("/proc/self/uid_map");  // "0 0 4294967295" is that of no namespace
    const bool is_initial = !map || (map->starts_with("0 ") && map->ends_with(" 4294967295"));
    return is_initial && (!is_known || (sets[0].effective & kReads) != 0);
  }();
  return reads_all && ::geteuid() == 0;
}

struct User {
  uid_t uid;
  gid_t group = kNoGroup;
  std::vector<gid_t> groups{};
};

// A user that this host does not know has no groups. A set may have a million links of one user.
const User& user_with(uid_t uid) {
  static thread_local std::map<uid_t, User> known;
  const auto [at, is_new] = known.try_emplace(uid, User{uid});
  User& user = at->second;
  if (!is_new) return user;
  std::vector<char> text(1 << 16);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, text.data(), text.size(), &found) != 0 || found == nullptr) return user;
  user.group = entry.pw_gid;
  int count = NGROUPS_MAX;
  user.groups.resize(static_cast<std::size_t>(count));
  if (::getgrouplist(entry.pw_name, entry.pw_gid, user.groups.data(), &count) < 0) count = 0;
  user.groups.resize(static_cast<std::size_t>(count));
  return user;
}

// What this thread opens, it opens with the user's rights. The C library's setgroups() is for all threads.
class RightsOf {
 public:
  explicit RightsOf(const User& user) {
    ::prctl(PR_GET_PDEATHSIG, &death_signal_);
    groups_.resize(static_cast<std::size_t>(std::max(0, ::getgroups(0, nullptr))));
    const int count = ::getgroups(static_cast<int>(groups_.size()), groups_.data());
    has_them_ = count >= 0 && ::syscall(SYS_setgroups, user.groups.size(), user.groups.data()) == 0;
    group_ = static_cast<gid_t>(::setfsgid(user.group));
    ::setfsuid(user.uid);
    has_them_ = has_them_ && static_cast<uid_t>(::setfsuid(static_cast<uid_t>(-1))) == user.uid &&
                static_cast<gid_t>(::setfsgid(static_cast<gid_t>(-1))) == user.group;
  }
  // The kernel forgets some of a process's settings when its user changes. Keeps errno.
  ~RightsOf() {
    const int number = errno;
    ::setfsuid(::geteuid());
    ::setfsgid(group_);
    ::syscall(SYS_setgroups, groups_.size(), groups_.data());
    ::prctl(PR_SET_DUMPABLE, dumpable_, 0, 0, 0);
    if (death_signal_ != 0) ::prctl(PR_SET_PDEATHSIG, death_signal_);
    if (death_signal_ != 0 && ::getppid() != parent_) ::raise(death_signal_);
    errno = number;
  }
  RightsOf(const RightsOf&) = delete;
  RightsOf& operator=(const RightsOf&) = delete;

  bool has_them() const { return has_them_; }

 private:
  const pid_t parent_ = ::getppid();
  const int dumpable_ = ::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
  int death_signal_ = 0;
  std::vector<gid_t> groups_;
  gid_t group_ = 0;
  bool has_them_ = false;
};

class Walk {
 public:
  Walk(const std::filesystem::path& path, Links links, const std::optional<Within>& within)
      : path_(path), links_(links), within_(within) {}

  Result<NamedPath> run() {
    auto begun = is_held() ? begin_held() : begin(path_.is_absolute() ? "/" : ".");
    if (!begun) return begun.take_error();
    if (!is_held()) add(path_.native());
    while (!names_.empty()) {
      const std::string name = std::move(names_.back());
      names_.pop_back();
      if (auto stepped = name == ".." ? climb() : step(name); !stepped) return stepped.take_error();
    }
    at_.path = shown();
    if (auto readable = check_readable(); !readable) return readable.take_error();
    return std::move(at_);
  }

 private:
  const std::filesystem::path& path_;
  const Links links_;
  const std::optional<Within>& within_;
  std::vector<std::string> names_;  // to come; the last is the next
  NamedPath at_;
  std::vector<std::string> parts_;  // of its path
  UniqueFd volume_;
  std::vector<User> users_;  // who could have changed the way so far
  std::string link_;         // the first link of one of them
  bool is_movable_ = false;  // or of root, where others may put one in its place
  unsigned followed_ = 0;

  std::string doing() const { return "opening " + printable(path_.native()); }
  std::string shown() const { return parts_.empty() ? "/" : "/" + join(parts_, "/"); }

  void add(const std::string& path) {
    const std::vector<std::string> parts = split(path, '/');
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      if (!part->empty() && *part != ".") names_.push_back(*part);
    }
  }

  bool is_held() const { return path_.native().starts_with(kHeldPrefix); }

  Result<> begin_held() {
    const std::string& path = path_.native();
    const std::size_t end = std::min(path.find('/', kHeldPrefix.size()), path.size());
    const std::string held = path.substr(0, end);
    at_.fd.reset(::open(held.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!at_.fd || ::fstat(at_.fd.get(), &at_.info) != 0) return fail_errno(errno, doing());
    std::ranges::copy_if(split(present_path(held).native(), '/'), std::back_inserter(parts_),
                         [](const std::string& part) { return !part.empty(); });
    add(path.substr(end));
    return {};
  }

  Result<> begin(const char* where) {
    at_.folder.reset();
    at_.fd.reset(::open(where, O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!at_.fd || ::fstat(at_.fd.get(), &at_.info) != 0) return fail_errno(errno, doing());
    parts_.clear();
    if (*where == '/') return {};
    std::error_code error;
    const auto here = std::filesystem::current_path(error);
    if (error) return fail_errno(error.value(), doing());
    for (const std::string& part : split(here.native(), '/')) {
      if (!part.empty()) parts_.push_back(part);
    }
    return {};
  }

  // With the rights of all users_; errno has the reason of a failure.
  UniqueFd open(const std::string& name) const {
    const auto open_it = [&] {
      // Without O_DIRECTORY, O_PATH does not mount an automounted folder.
      UniqueFd next(::openat(at_.fd.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!next && errno == ENOTDIR)
        next.reset(::openat(at_.fd.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
      return next;
    };
    if (users_.empty()) return open_it();
    UniqueFd next;
    for (const User& user : users_) {
      const RightsOf rights(user);
      errno = EACCES;
      next = rights.has_them() ? open_it() : UniqueFd();
      if (!next) break;
    }
    return next;
  }

  // What is there is read with this process's rights: a folder's names and modes say something too.
  Result<> check_readable() const {
    if (!S_ISDIR(at_.info.st_mode) && !S_ISREG(at_.info.st_mode)) return {};
    for (const User& user : users_) {
      const RightsOf rights(user);
      constexpr int kAsItIs = AT_EMPTY_PATH | AT_EACCESS;
      if (!rights.has_them() || ::syscall(SYS_faccessat2, at_.fd.get(), "", R_OK, kAsItIs) != 0)
        return refuse(EACCES);
    }
    return {};
  }

  Result<> step(const std::string& name) {
    UniqueFd next = open(name);
    struct stat info {};
    if (!next || ::fstat(next.get(), &info) != 0) return refuse(errno);
    const bool is_last = names_.empty() && links_ == Links::LastIsItself && path_.has_filename();
    if (S_ISLNK(info.st_mode) && !is_last) return follow(name, next.get(), info);
    at_.folder = std::move(at_.fd);
    at_.fd = std::move(next);
    at_.info = info;
    parts_.push_back(name);
    if (within_ && followed_ == 0 && shown() == within_->mount)
      volume_.reset(::fcntl(at_.fd.get(), F_DUPFD_CLOEXEC, 0));
    return check_within();
  }

  Result<> climb() {
    UniqueFd above = open("..");
    if (!above || ::fstat(above.get(), &at_.info) != 0) return refuse(errno);
    at_.fd = std::move(above);
    at_.folder.reset();
    if (!parts_.empty()) parts_.pop_back();
    return check_within();
  }

  Result<> follow(const std::string& name, int link, const struct stat& info) {
    if (++followed_ > kMostLinks) return fail_errno(ELOOP, doing());
    const std::string whole = (parts_.empty() ? "" : shown()) + "/" + name;
    for (const uid_t owner : {info.st_uid, at_.info.st_uid}) {
      const bool is_known = std::ranges::find(users_, owner, &User::uid) != users_.end();
      if (!has_roots_rights() || owner == 0 || is_known) continue;
      if (users_.empty()) link_ = whole;
      users_.push_back(links_ == Links::OfRootAlone ? User{owner} : user_with(owner));
    }
    // Whoever may rename in root's folder may have moved a link of root's there.
    const bool is_of_root = info.st_uid == 0 && at_.info.st_uid == 0;
    const mode_t by_others = at_.info.st_mode & (S_IWGRP | S_IWOTH);
    if (has_roots_rights() && is_of_root && by_others != 0 && (at_.info.st_mode & S_ISVTX) == 0) {
      if (users_.empty()) link_ = whole;
      is_movable_ = true;
      users_.push_back({kNobody, by_others == S_IWGRP ? at_.info.st_gid : kNoGroup});
    }
    if (links_ == Links::OfRootAlone && !users_.empty()) return refuse(EACCES);
    std::array<char, PATH_MAX> text{};
    const ssize_t length = ::readlinkat(link, "", text.data(), text.size());
    if (length < 0) return fail_errno(errno, doing());
    std::string target(text.data(), static_cast<std::size_t>(length));
    if (!target.starts_with('/')) return add(target), Result<>();
    if (!volume_) {
      add(target);
      return begin("/");
    }
    const std::string& mount = within_->mount;
    if (target != mount && !target.starts_with(mount + "/")) return refuse_outside();
    add(target.substr(mount.size()));
    at_.folder.reset();
    at_.fd.reset(::fcntl(volume_.get(), F_DUPFD_CLOEXEC, 0));
    if (!at_.fd || ::fstat(at_.fd.get(), &at_.info) != 0) return fail_errno(errno, doing());
    parts_ = split(mount.substr(1), '/');
    return {};
  }

  // The same whatever is there: who asks may not be allowed to know.
  Result<> check_within() const {
    return volume_ && followed_ > 0 && at_.info.st_dev != within_->device ? refuse_outside() : Result<>();
  }

  Result<> refuse_outside() const {
    return fail(Errc::Refused, doing() + ": a symbolic link there leads out of the volume",
                "name the folder that it leads to as a dataset of its own");
  }

  Result<> refuse(int number) const {
    if (users_.empty() || number != EACCES) return fail_errno(number, doing());
    return fail(Errc::Refused,
                doing() + ": the symbolic link " + printable(link_) + " is not root's" +
                    (is_movable_ ? ", or others may put one in its place" : "") + ", and uid " +
                    std::to_string(users_.back().uid) + " may not go where it leads",
                "name the file or folder itself, or give the link and its folder to root");
  }
};

}  // namespace

UniqueFd NamedPath::open_folder() const {
  constexpr int kContent = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  const std::string name = std::filesystem::path(path).filename();
  if (!folder || name.empty()) return UniqueFd(::openat(fd.get(), ".", kContent));
  return UniqueFd(::openat(folder.get(), name.c_str(), kContent));
}

Result<NamedPath> open_named(const std::filesystem::path& path, Links links,
                             const std::optional<Within>& within) {
  return Walk(path, links, within).run();
}

}  // namespace spark
