#include "staging/outputs/job_folder.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <vector>

#include "base/file.hpp"
#include "base/text.hpp"

namespace spark::staging {
namespace {

constexpr unsigned kMostLinks = 40;  // as in the kernel

// Follows a path one name at a time; the kernel would follow any user's link with root's rights.
class Walk {
 public:
  explicit Walk(const std::string& path) : path_(path) {}

  Result<uid_t> run() {
    add(path_);
    if (auto started = start_at_root(); !started) return started.take_error();
    while (!names_.empty()) {
      const std::string name = std::move(names_.back());
      names_.pop_back();
      if (auto stepped = step(name); !stepped) return stepped.take_error();
    }
    if (link_ && link_->owner != owner_) return refuse_link(*link_).take_error();
    if (owner_ == 0 && (mode_ & (S_IWGRP | S_IWOTH)) != 0) return refuse_writers().take_error();
    return owner_;
  }

 private:
  struct Link {
    std::string shown;
    uid_t owner;
  };

  // The names are taken from the end.
  void add(const std::string& path) {
    const std::vector<std::string> parts = split(path, '/');
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      if (!part->empty() && *part != ".") names_.push_back(*part);
    }
  }

  Result<> start_at_root() {
    folder_.reset(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    shown_.clear();
    user_.reset();
    owner_ = 0;
    mode_ = 0;  // of no interest: no output is the root folder
    if (!folder_) return fail_errno(errno, doing());
    return {};
  }

  Result<> step(const std::string& name) {
    const std::string shown = shown_ + "/" + name;
    // O_DIRECTORY, because without it O_PATH does not mount an automounted folder.
    UniqueFd next(::openat(folder_.get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!next && errno == ENOTDIR)
      next.reset(::openat(folder_.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat info {};
    if (!next || ::fstat(next.get(), &info) != 0) {
      return fail_errno(errno, doing(),
                        errno == ENOENT ? "create the folder, and make the jobs' user its owner" : "");
    }
    if (user_ && info.st_uid != *user_) return refuse_owner(shown, info.st_uid);
    if (S_ISLNK(info.st_mode)) {
      const Link link{shown, info.st_uid};
      if (link.owner != 0 && link_ && link_->owner != link.owner) return refuse_link(link);
      if (link.owner != 0 && !link_) link_ = link;
      return follow(next.get());
    }
    if (!S_ISDIR(info.st_mode))
      return fail(Errc::Invalid, doing() + ": " + printable(shown) + " is no folder", "name a folder");
    if (info.st_uid != 0) user_ = info.st_uid;
    owner_ = info.st_uid;
    mode_ = info.st_mode;
    folder_ = std::move(next);
    shown_ = shown;
    return {};
  }

  Result<> follow(int link) {
    if (++links_ > kMostLinks) return fail_errno(ELOOP, doing());
    std::array<char, PATH_MAX> text{};
    const ssize_t length = ::readlinkat(link, "", text.data(), text.size());
    if (length < 0) return fail_errno(errno, doing());
    const std::string target(text.data(), static_cast<std::size_t>(length));
    add(target);
    return target.starts_with('/') ? start_at_root() : Result<>();
  }

  Result<> refuse_link(const Link& link) const {
    return fail(Errc::Refused,
                doing() + ": " + printable(link.shown) + " is a symbolic link of uid " +
                    std::to_string(link.owner) + ", and leads to files of another user",
                "name the folder that it leads to, or give the link to root with `sudo chown -h root`");
  }

  Result<> refuse_owner(const std::string& shown, uid_t owner) const {
    return fail(Errc::Refused,
                doing() + ": " + printable(shown) + " belongs to uid " + std::to_string(owner) +
                    ", but is below a folder of uid " + std::to_string(*user_) + ", who could replace it",
                "name a folder with a path that belongs to root and to its owner alone");
  }

  Result<> refuse_writers() const {
    const std::string shown = printable(shown_);
    return fail(
        Errc::Refused,
        doing() + ": " + shown +
            " belongs to root, and other users may write to it: what they put there would be read with "
            "root's rights",
        "give it to the jobs' user with `sudo chown USER " + shown +
            "`, or let only root write to it with `sudo chmod go-w " + shown + "`");
  }

  std::string doing() const { return "looking at " + printable(path_); }

  const std::string& path_;         // the caller's
  std::vector<std::string> names_;  // the last is the next
  UniqueFd folder_;
  std::string shown_;          // path of `folder_`; empty means "/"
  std::optional<uid_t> user_;  // owner of a folder above; none while all belong to root
  uid_t owner_ = 0;            // of `folder_`
  mode_t mode_ = 0;            // the same
  std::optional<Link> link_;   // the first that a user owns: only that user's own folder may be behind it
  unsigned links_ = 0;
};

}  // namespace

Result<uid_t> owner_of_job_folder(const std::string& path) {
  if (!path.starts_with('/'))
    return fail(Errc::Invalid, printable(path) + " is not an absolute path", "name the folder from / on");
  return Walk(path).run();
}

}  // namespace spark::staging
