#include "daemon/uevents.hpp"

#include <fcntl.h>
#include <systemd/sd-device.h>
#include <systemd/sd-event.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <string_view>

#include "base/file.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/token.hpp"

namespace spark {
namespace {

// 100 simultaneous subsystems overflow the usual 128 KiB (nvme-stas issue 380).
constexpr std::size_t kReceiveBuffer = 16 << 20;

std::string property(sd_device* device, const char* name) {
  const char* value = nullptr;
  return sd_device_get_property_value(device, name, &value) >= 0 && value != nullptr ? value : "";
}

std::string name_of(sd_device* device) {
  const char* name = nullptr;
  return sd_device_get_sysname(device, &name) >= 0 && name != nullptr ? name : "";
}

}  // namespace

// Shared with the waiting coroutine, which may resume once more after stop().
struct Uevents::Monitor {
  explicit Monitor(boost::asio::any_io_executor executor) : readable(executor) {}
  ~Monitor() {
    sd_device_monitor_unref(monitor);
    sd_event_unref(loop);
  }
  sd_event* loop = nullptr;
  sd_device_monitor* monitor = nullptr;
  boost::asio::posix::stream_descriptor readable;  // a duplicate of the loop's descriptor
  std::function<void(const Uevent&)> heard;
  bool is_stopped = false;
};

Uevents::Uevents(boost::asio::any_io_executor executor, std::function<void(const Uevent&)> heard)
    : executor_(std::move(executor)), heard_(std::move(heard)) {}

Uevents::~Uevents() {
  stop();
}

Result<> Uevents::start() {
  const std::string doing = "listening to udev";
  auto made = std::make_shared<Monitor>(executor_);
  made->heard = heard_;
  const auto on_device = [](sd_device_monitor*, sd_device* device, void* self) {
    const char* subsystem = nullptr;
    const bool is_disk =
        sd_device_get_subsystem(device, &subsystem) >= 0 && std::string_view(subsystem) == "block";
    Uevent event{name_of(device), property(device, "ACTION"), property(device, "NVME_EVENT"),
                 property(device, "NVME_AEN"), is_disk};
    if (event.device.starts_with("nvme")) static_cast<Monitor*>(self)->heard(event);
    return 0;
  };
  int status = sd_event_new(&made->loop);
  if (status >= 0) status = sd_device_monitor_new(&made->monitor);
  if (status < 0) return fail_errno(-status, doing);
  // Needs CAP_NET_ADMIN; without it fewer events fit, and lost ones are detected by the next periodic check.
  if (sd_device_monitor_set_receive_buffer_size(made->monitor, kReceiveBuffer) < 0)
    log::warning("listening to udev: its buffer stays small, the kernel allows no larger one");
  status = sd_device_monitor_filter_add_match_subsystem_devtype(made->monitor, "nvme", nullptr);
  if (status >= 0)
    status = sd_device_monitor_filter_add_match_subsystem_devtype(made->monitor, "block", "disk");
  if (status >= 0) status = sd_device_monitor_attach_event(made->monitor, made->loop);
  if (status >= 0) status = sd_device_monitor_start(made->monitor, on_device, made.get());
  if (status < 0) return fail_errno(-status, doing);
  const int copy = ::fcntl(sd_event_get_fd(made->loop), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return fail_errno(errno, doing);
  made->readable.assign(copy);
  monitor_ = std::move(made);
  launch(executor_, "events of the kernel", listen(monitor_));
  return {};
}

void Uevents::stop() {
  if (!monitor_) return;
  monitor_->is_stopped = true;
  boost::system::error_code ignored;
  monitor_->readable.close(ignored);
  monitor_.reset();
}

boost::asio::awaitable<void> Uevents::listen(std::shared_ptr<Monitor> monitor) {
  while (!monitor->is_stopped) {
    // All pending events; each call handles one.
    while (!monitor->is_stopped && sd_event_run(monitor->loop, 0) > 0) {
    }
    if (monitor->is_stopped) co_return;
    const auto [error] =
        co_await monitor->readable.async_wait(boost::asio::posix::stream_descriptor::wait_read, kToken);
    if (error) co_return;
  }
}

}  // namespace spark
