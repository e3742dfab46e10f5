#include "staging/view/fuse/fuse_session.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/text.hpp"
#include "base/threads.hpp"
#include "staging/view/fuse/fuse_view.hpp"

namespace spark::staging {
namespace {

constexpr std::size_t kThreads = 4;  // that answer; they wait for the drive only
constexpr std::chrono::milliseconds kBetweenLooks{100};
constexpr int kLooksBeforeAbort = 10;  // a process that is served ends at once

// Returns errno, or 0.
int send_to(int device, const FuseMessage& message) {
  std::array<iovec, 2> parts{iovec{const_cast<std::byte*>(message.head.data()), message.head.size()},
                             iovec{const_cast<std::byte*>(message.bytes.data()), message.bytes.size()}};
  return ::writev(device, parts.data(), message.bytes.empty() ? 1 : 2) < 0 ? errno : 0;
}

// The process can't go on: an exception ends it, and the next one gets all unanswered requests.
void require(bool holds, const char* doing) {
  if (!holds) throw std::system_error(errno, std::generic_category(), doing);
}

class Session {
 public:
  explicit Session(const FuseSession& session)
      : session_(session),
        reader_(session.tree, session.map, session.failed),
        view_(
            session.tree, session.map, reader_,
            [device = session.device](const FuseMessage& message) {
              const int failed = send_to(device, message);  // ENOENT: the request has been given up
              require(failed == 0 || failed == ENOENT, "answering the kernel for a live view");
            },
            [](pid_t thread) { return is_being_killed(SystemRoot{}, thread); }, backings_of(session.device)) {
  }

  Result<> go() {
    if (session_.is_taken_over) {
      const int failed = send_to(session_.device, resend_notice());
      if (failed != 0) return fail_errno(failed, "asking the kernel for the requests of an earlier process");
      begun(true);
    }
    std::thread settling;
    settling = start_thread([this]() noexcept { settle(); });
    if (!settling.joinable()) return fail(Errc::NoSpace, "serving a live view: no thread can be started");
    const auto ran = run_in_threads(kThreads, [this](std::size_t) noexcept { answer(); });
    end();
    settling.join();
    if (!ran) return fail_with(ran.error(), "serving a live view");
    return {};
  }

 private:
  const FuseSession& session_;
  ViewReader reader_;
  FuseView view_;
  std::atomic<bool> is_over_{false};
  std::once_flag begun_;

  void begun(bool can_resend) {
    std::call_once(begun_, [&] {
      if (session_.begun) session_.begun(can_resend);
    });
  }

  void end() {
    is_over_ = true;
    session_.map.wake();
  }

  void answer() {
    const IoBuffer request(kRequestBuffer), buffer(kReadBuffer);
    while (!is_over_) {
      const ssize_t got = ::read(session_.device, request.data(), request.size());
      if (got < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOENT)) continue;
      if (got <= 0) {
        // Unmounted or aborted: fs/fuse/dev.c, fuse_dev_do_read(). Both may be said of one unmount.
        require(got == 0 || errno == ENODEV || errno == ECONNABORTED,
                "reading the kernel's requests for a live view");
        return end();
      }
      view_.answer(std::span<const std::byte>(request.data(), static_cast<std::size_t>(got)), buffer);
      begun(view_.can_resend());  // the first request is the one that tells
    }
  }

  void settle() {
    const IoBuffer buffer(kReadBuffer);
    auto looked_at = std::chrono::steady_clock::now();
    while (!is_over_) {
      const std::uint32_t changes = session_.map.changes();
      const auto now = std::chrono::steady_clock::now();
      const bool looks_closer = now - looked_at >= kBetweenLooks;
      if (looks_closer) looked_at = now;
      view_.settle(buffer, looks_closer);
      if (!is_over_) session_.map.wait(changes, kBetweenLooks);
    }
  }
};

// Of a process that has to end, and can't: it waits for the answer to a read, and the view's process may have
// ended.
[[noreturn]] void end_connection_of(pid_t process, const UniqueFd& abort) {
  if (::dup2(abort.get(), 0) != 0 || ::close_range(1, ~0U, 0) != 0) ::_exit(1);
  for (int killed = 0; killed < kLooksBeforeAbort;) {
    std::this_thread::sleep_for(kBetweenLooks);
    if (::getppid() != process) ::_exit(0);
    killed = is_being_killed(SystemRoot{}, process) ? killed + 1 : 0;
  }
  ::_exit(::write(0, "1", 1) == 1 ? 0 : 1);
}

}  // namespace

Result<UniqueFd> open_fuse_device() {
  UniqueFd device(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (!device)
    return fail_errno(errno, "opening /dev/fuse",
                      "a live view needs it: `modprobe fuse`, and in a container the device");
  return device;
}

Result<> mount_fuse(const UniqueFd& device, const std::filesystem::path& folder, const std::string& name) {
  const std::string options =
      "fd=" + std::to_string(device.get()) +
      ",rootmode=40000,user_id=0,group_id=0,default_permissions,allow_other,max_read=" +
      std::to_string(kMostRead);
  if (::mount(name.c_str(), folder.c_str(), kFuseType, MS_RDONLY | MS_NOSUID | MS_NODEV, options.c_str()) ==
      0)
    return {};
  return fail_errno(errno, "mounting a live view on " + printable(folder.native()));
}

Result<> serve_fuse(const FuseSession& session) {
  return Session(session).go();
}

// Not by its path, which is not mounted in every container.
UniqueFd open_abort_file(unsigned connection) {
  const UniqueFd type(::fsopen("fusectl", FSOPEN_CLOEXEC));
  if (!type || ::fsconfig(type.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) return {};
  const UniqueFd mounted(::fsmount(type.get(), FSMOUNT_CLOEXEC, 0));
  const std::string file = std::to_string(connection) + "/abort";
  return UniqueFd(::openat(mounted.get(), file.c_str(), O_WRONLY | O_CLOEXEC));
}

Result<> drop_fuse_pages(const UniqueFd& device, unsigned connection, std::uint64_t nodes) {
  const UniqueFd abort = open_abort_file(connection);
  if (!abort) return fail_errno(errno, "opening the control file of a live view's connection");
  const pid_t self = ::getpid(), watcher = ::fork();
  if (watcher < 0) return fail_errno(errno, "dropping the pages of a live view");
  if (watcher == 0) end_connection_of(self, abort);
  ::setpgid(watcher, 0);  // it is not killed with this process
  for (std::uint64_t node = 0; node < nodes; ++node)
    send_drop_notice(static_cast<NodeNumber>(node),
                     [&](const FuseMessage& message) { (void)send_to(device.get(), message); });
  ::kill(watcher, SIGKILL);
  ::waitpid(watcher, nullptr, 0);
  return {};
}

}  // namespace spark::staging
