#include "nvmetcp/sysfs/timers.hpp"

#include <fcntl.h>

#include <optional>

#include "base/file.hpp"
#include "base/text.hpp"
#include "nvmetcp/sysfs/sysfs.hpp"

namespace spark::nvmetcp {
namespace {

using std::chrono::seconds;

std::string number(seconds value) {
  return std::to_string(value.count());
}
std::string text_or_off(std::optional<seconds> value) {
  return value ? number(*value) : "off";
}

// The kernel keeps a number of attempts instead of the time, and shows attempts × delay.
std::optional<seconds> as_kept(std::optional<seconds> loss, seconds delay) {
  if (!loss) return std::nullopt;
  return (*loss + delay - seconds(1)) / delay * delay;
}

namespace fs = std::filesystem;

struct Setting {
  fs::path file;
  const char* key;  // the config's
  std::string wanted;
};

// The policy is the subsystem's: one for all of its paths. Empty: without native multipath there is none.
fs::path policy_file(const SystemRoot& root, const std::string& controller) {
  for (const fs::path& subsystem : list_folder(root / "sys/class/nvme-subsystem")) {
    std::error_code gone;
    if (fs::exists(subsystem / controller, gone)) return subsystem / "iopolicy";
  }
  return {};
}

// Those that can be changed while a controller lives.
std::vector<Setting> live_settings(const SystemRoot& root, const std::string& controller,
                                   const ConnectOptions& asked) {
  const fs::path folder = root / "sys/class/nvme" / controller;
  const auto loss = as_kept(asked.controller_loss, asked.reconnect_delay);
  std::vector<Setting> settings = {
      {folder / "reconnect_delay", "reconnect_delay", number(asked.reconnect_delay)},
      {folder / "ctrl_loss_tmo", "controller_loss", text_or_off(loss)},
      {folder / "fast_io_fail_tmo", "fast_fail", text_or_off(asked.fast_fail)}};
  if (!asked.io_policy.empty())
    settings.push_back({policy_file(root, controller), "io_policy", asked.io_policy});
  return settings;
}

std::vector<std::string> wrong(const std::vector<Setting>& settings) {
  std::vector<std::string> found;
  for (const Setting& setting : settings) {
    const auto shown = read_line_file(setting.file);
    if (!shown && setting.file.empty()) {
      found.push_back(std::string(setting.key) + " is unknown to this kernel (native multipath is off)");
    } else if (shown && *shown != setting.wanted) {
      found.push_back(std::string(setting.key) + " is " + printable(*shown) + ", not " + setting.wanted);
    }
  }
  return found;
}

void write_attribute(const std::filesystem::path& path, const std::string& value) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (fd) [[maybe_unused]]
    const auto written = ::write(fd.get(), value.data(), value.size());
}

}  // namespace

std::vector<std::string> differences(const SystemRoot& root, const Controller& controller,
                                     const ConnectOptions& asked) {
  auto settings = live_settings(root, controller.name, asked);
  settings.push_back(
      {root / "sys/class/nvme" / controller.name / "kato", "keep_alive", number(asked.keep_alive)});
  std::vector<std::string> found = wrong(settings);
  if (!asked.interface.empty() && controller.interface != asked.interface) {
    const std::string shown = controller.interface.empty() ? "not set" : printable(controller.interface);
    found.push_back("interface is " + shown + ", not " + printable(asked.interface));
  }
  return found;
}

void set_timers(const SystemRoot& root, const Controller& controller, const ConnectOptions& asked) {
  const auto folder = root / "sys/class/nvme" / controller.name;
  const seconds off{-1};
  // In this order: ctrl_loss_tmo is divided by the delay that holds when it is written.
  write_attribute(folder / "reconnect_delay", number(asked.reconnect_delay));
  write_attribute(folder / "ctrl_loss_tmo", number(asked.controller_loss.value_or(off)));
  write_attribute(folder / "fast_io_fail_tmo", number(asked.fast_fail.value_or(off)));
  set_io_policy(root, controller.name, asked);
}

void set_io_policy(const SystemRoot& root, const std::string& controller, const ConnectOptions& asked) {
  if (!asked.io_policy.empty()) write_attribute(policy_file(root, controller), asked.io_policy);
}

Result<> change_timers(const SystemRoot& root, const std::string& name, const std::string& subsystem,
                       const ConnectOptions& asked) {
  const std::string doing = "setting the timers of " + printable(name);
  const auto found = connection_to_change(root, name, subsystem, doing);
  if (!found) return found.take_error();
  set_timers(root, *found, asked);
  const auto left = wrong(live_settings(root, found->name, asked));
  if (left.empty()) return {};
  return fail(Errc::Unsupported, doing + ": the kernel did not take them: " + join(left, "; "),
              "`spark-stage volumes down`, then `up`, connects with them");
}

}  // namespace spark::nvmetcp
