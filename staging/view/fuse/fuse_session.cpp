#include "staging/view/fuse/fuse_session.hpp"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <optional>
#include <thread>

#include "base/text.hpp"
#include "base/threads.hpp"
#include "staging/view/fuse/fuse_view.hpp"

namespace spark::staging {
namespace {

constexpr std::size_t kThreads = 4;  // that answer; they wait for the drive only
constexpr std::chrono::milliseconds kBetweenLooks{100};

// Returns errno, or 0.
int send_to(int device, const FuseMessage& message) {
  std::array<iovec, 2> parts{iovec{const_cast<std::byte*>(message.head.data()), message.head.size()},
                             iovec{const_cast<std::byte*>(message.bytes.data()), message.bytes.size()}};
  // ENOENT: the request has been given up meanwhile.
  return ::writev(device, parts.data(), message.bytes.empty() ? 1 : 2) < 0 ? errno : 0;
}

class Session {
 public:
  explicit Session(const FuseSession& session)
      : session_(session),
        reader_(session.tree, session.map),
        view_(
            session.tree, session.map, reader_,
            [device = session.device](const FuseMessage& message) { (void)send_to(device, message); },
            [](pid_t thread) { return is_being_killed(SystemRoot{}, thread); }) {}

  // An exception ends the process: the next one gets the unanswered requests.
  Result<> go() {
    if (session_.is_taken_over) {
      const int failed = send_to(session_.device, FuseView::resend_notice());
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
    const std::scoped_lock lock(mutex_);
    return error_ ? fail(*error_) : Result<>();
  }

 private:
  const FuseSession& session_;
  ViewReader reader_;
  FuseView view_;
  std::atomic<bool> is_over_{false};
  std::once_flag begun_;
  std::mutex mutex_;
  std::optional<Error> error_;

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
        // ENODEV: unmounted, or aborted.
        if (got < 0 && errno != ENODEV) note(errno);
        return end();
      }
      view_.answer(std::span<const std::byte>(request.data(), static_cast<std::size_t>(got)), buffer);
      begun(view_.can_resend());  // the first request is the one that tells
    }
  }

  void note(int number) {
    const std::scoped_lock lock(mutex_);
    error_ = fail_errno(number, "reading the kernel's requests for a live view").value();
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

}  // namespace spark::staging
