#include "tests/unit/staging/view/fuse/fuse_keeper.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <utility>

#include "staging/view/fuse/fuse_session.hpp"
#include "staging/view/view_tree.hpp"

namespace spark::staging::test {
namespace {

// Of the keeper. Each answer is 0, a status, or -1.
class Servers {
 public:
  Servers(const ViewPlace& place, const std::filesystem::path& view) : place_(place), view_(view) {}

  int obey(char what) {
    switch (what) {
      case 'm':
        return mount() ? start(false) : -1;
      case 'k':
        ::kill(server_, SIGKILL);
        return reap();
      case 'n':
        return start(true);
      case 's':
        return ::kill(server_, SIGSTOP);
      case 'd':
        return drop_pages();
      default:
        return reap();
    }
  }

 private:
  const ViewPlace& place_;
  const std::filesystem::path& view_;
  UniqueFd device_;
  pid_t server_ = 0;

  bool mount() {
    auto device = open_fuse_device();
    if (!device) return false;
    device_ = std::move(*device);
    return mount_fuse(device_, view_, "faces").has_value();
  }

  int start(bool is_taken_over) {
    server_ = ::fork();
    if (server_ != 0) return server_ > 0 ? 0 : -1;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    auto map = ViewMap::open(place_);
    if (!map) ::_exit(2);
    auto tree = ViewTree::read(place_.entries());
    if (!tree) ::_exit(3);
    const auto served = serve_fuse({*tree, **map, device_.get(), is_taken_over});
    ::_exit(served ? 0 : 4);
  }

  // In a process of its own.
  int drop_pages() const {
    const pid_t dropper = ::fork();
    if (dropper != 0) return dropper > 0 ? 0 : -1;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct statx info {};
    if (::statx(AT_FDCWD, view_.c_str(), AT_STATX_DONT_SYNC, STATX_TYPE, &info) != 0) ::_exit(2);
    constexpr std::uint64_t kNodes = 100;
    ::_exit(drop_fuse_pages(device_, info.stx_dev_minor, kNodes) ? 0 : 3);
  }

  int reap() {
    int status = -1;
    ::waitpid(server_, &status, 0);
    return status;
  }
};

}  // namespace

FuseKeeper::FuseKeeper(ViewPlace place, std::filesystem::path view)
    : place_(std::move(place)), view_(std::move(view)) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error("no socket for the keeper of /dev/fuse");
  const UniqueFd others(ends[1]);
  socket_.reset(ends[0]);
  const pid_t parent = ::getpid();
  keeper_ = ::fork();
  if (keeper_ < 0) throw std::runtime_error("no keeper of /dev/fuse");
  if (keeper_ > 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  ::alarm(kHangs);
  socket_.reset(::dup(ends[1]));
  keep();
}

FuseKeeper::~FuseKeeper() {
  end();
}

void FuseKeeper::keep() {
  Servers servers(place_, view_);
  for (char what = 0; ::read(socket_.get(), &what, 1) == 1;) {
    const int answer = servers.obey(what);
    if (::write(socket_.get(), &answer, sizeof answer) != sizeof answer) break;
  }
  ::_exit(0);
}

int FuseKeeper::ask(char what) {
  int answer = -1;
  if (::send(socket_.get(), &what, 1, MSG_NOSIGNAL) != 1) return -1;
  return ::read(socket_.get(), &answer, sizeof answer) == sizeof answer ? answer : -1;
}

void FuseKeeper::end() {
  if (keeper_ <= 0) return;
  ::kill(keeper_, SIGKILL);
  ::waitpid(std::exchange(keeper_, 0), nullptr, 0);
}

}  // namespace spark::staging::test
