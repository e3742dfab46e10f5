#include "nvmetcp/connect/fabrics_device.hpp"

#include <fcntl.h>
#include <sys/utsname.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <string_view>

#include "base/child.hpp"
#include "base/kernel/log.hpp"
#include "base/text.hpp"
#include "nvmetcp/names.hpp"

namespace spark::nvmetcp {
namespace {

constexpr const char* kDevice = "dev/nvme-fabrics";
constexpr std::chrono::seconds kLoadDeadline{20};

bool is_arm() {
  utsname names{};
  return ::uname(&names) == 0 && std::string_view(names.machine) == "aarch64";
}

bool transport_is_there(const SystemRoot& root) {
  std::error_code ignored;
  return std::filesystem::exists(root / kDevice, ignored) &&
         std::filesystem::exists(root / "sys/module/nvme_tcp", ignored);
}

// "instance=3,cntlid=1"
std::string controller_name(const std::string& answer) {
  for (const std::string& part : split(trim(answer), ',')) {
    if (part.starts_with("instance=")) return "nvme" + part.substr(part.find('=') + 1);
  }
  return {};
}

// One read is one answer of the device: it has no end of file to look for.
Result<std::string> read_answer(int fd) {
  std::array<char, 4096> text{};
  const ssize_t got = ::read(fd, text.data(), text.size());
  if (got < 0) return fail_errno(errno, "reading /dev/nvme-fabrics");
  return std::string(text.data(), static_cast<std::size_t>(got));
}

}  // namespace

Result<> load_transport(const SystemRoot& root, const std::vector<std::string>& loader) {
  if (transport_is_there(root)) return {};
  auto output = run_child(loader, kLoadDeadline);
  if (!output) return fail_with(std::move(output.error()), "loading the kernel's NVMe/TCP driver");
  if (output->exit_status == 0) return {};
  const std::string said = printable(trim(output->err));
  if (said.find("not permitted") != std::string::npos) {
    return fail(Errc::Denied, "loading the kernel's NVMe/TCP driver: " + said, "only root may load it");
  }
  return fail(Errc::Unsupported, "kernel " + kernel_release() + " has no NVMe/TCP driver: " + said,
              how_to_get_driver(root, kernel_release()));
}

std::string how_to_get_driver(const SystemRoot& root, const std::string& kernel) {
  std::error_code ignored;
  if (!std::filesystem::exists(root / ("lib/modules/" + kernel), ignored)) {
    return "reboot: the modules of the running kernel are not on this host any more; an upgrade may have "
           "removed them";
  }
  const auto system = read_file(root / "etc/os-release");
  const bool is_ubuntu = system && (system->find("ID=ubuntu") != std::string::npos ||
                                    system->find("ID_LIKE=ubuntu") != std::string::npos);
  if (is_ubuntu) return "sudo apt install linux-modules-extra-" + printable(kernel);
  const bool is_debian = system && system->find("ID=debian") != std::string::npos;
  return is_debian
             ? "install Debian's kernel, which has it, and reboot: sudo apt install linux-image-" +
                   std::string(is_arm() ? "arm64" : "amd64")
             : "boot a kernel with CONFIG_NVME_TCP, or install the package with the modules of this one";
}

Result<> check_supported(const SystemRoot& root, const FabricsOptions& asked) {
  const UniqueFd fd(::open((root / kDevice).c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd)
    return fail_errno(errno, "opening /dev/nvme-fabrics", errno == EACCES ? "only root may connect" : "");
  auto list = read_answer(fd.get());
  if (!list) return {};
  return check_supported(asked, *list, kernel_release());
}

// libnvme's nvmf_add_ctrl is not used for this: it folds every errno but seven into one code, so that "no
// route", "timed out", "host not allowed" and "CPU offline" can't be told apart; it leaves out options that
// the kernel lacks without a word (1.5 and later); and it scans and opens every namespace, with a use of
// uninitialised memory if the controller vanishes meanwhile (1.3).
tl::expected<MadeController, RefusedConnect> create_controller(const SystemRoot& root,
                                                               const FabricsOptions& options) {
  const std::string text = to_string(options);
  KernelLog log(root);
  const UniqueFd fd(::open((root / kDevice).c_str(), O_RDWR | O_CLOEXEC));
  if (!fd) return tl::unexpected(RefusedConnect{errno, {}});
  const ssize_t written = ::write(fd.get(), text.data(), text.size());
  if (written < 0) {
    const int number = errno;
    return tl::unexpected(RefusedConnect{number, log.lines("nvme")});
  }
  const auto answer = read_answer(fd.get());
  std::string name = answer ? controller_name(*answer) : "";
  // Connected, but under an unknown name: the next attempt finds and adopts it.
  if (!is_controller_name(name)) return tl::unexpected(RefusedConnect{EBADMSG, log.lines("nvme")});
  return MadeController{std::move(name), log.lines("nvme")};
}

}  // namespace spark::nvmetcp
