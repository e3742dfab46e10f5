#include "doctor/smart.hpp"

#include <fcntl.h>
#include <linux/nvme_ioctl.h>
#include <sys/ioctl.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "base/file.hpp"
#include "base/text.hpp"
#include "nvmetcp/names.hpp"

namespace spark::doctor {
namespace {

namespace fs = std::filesystem;

// NVM Express base specification: Get Log Page, log 02h.
constexpr std::uint8_t kGetLogPage = 0x02;
constexpr std::uint32_t kHealthLog = 0x02, kAllNamespaces = 0xFFFFFFFF, kPageBytes = 512;

constexpr std::array kWarnings = {"its spare blocks are below the threshold", "it is too hot or too cold",
                                  "it has become unreliable after many errors", "it has become read-only",
                                  "its memory is not kept in a power cut any more"};

// A partition's folder lies in its disk's, which lies in its controller's.
std::string controller_in(const fs::path& folder) {
  for (const fs::path& part : folder) {
    if (nvmetcp::is_controller_name(part.native())) return part.native();
  }
  return {};
}

}  // namespace

Result<DriveHealth> parse_health(std::string_view page) {
  if (page.size() < kPageBytes) return fail(Errc::Invalid, "the drive's health log is too short");
  DriveHealth health;
  const auto critical = static_cast<std::uint8_t>(page[0]);
  for (std::size_t bit = 0; bit < kWarnings.size(); ++bit) {
    if ((critical & (1U << bit)) != 0) health.warnings.emplace_back(kWarnings[bit]);
  }
  health.percent_used = static_cast<std::uint8_t>(page[5]);
  return health;
}

Result<DriveHealth> read_health(const std::string& device) {
  const UniqueFd fd(::open(device.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return fail_errno(errno, "opening " + printable(device));
  std::array<char, kPageBytes> page{};
  nvme_admin_cmd command{};
  command.opcode = kGetLogPage;
  command.nsid = kAllNamespaces;
  command.addr = reinterpret_cast<std::uintptr_t>(page.data());
  command.data_len = kPageBytes;
  command.cdw10 = kHealthLog | ((kPageBytes / 4 - 1) << 16);
  const int status = ::ioctl(fd.get(), NVME_IOCTL_ADMIN_CMD, &command);
  if (status < 0) return fail_errno(errno, "reading the health log of " + printable(device));
  if (status > 0) return fail(Errc::Unsupported, printable(device) + " gives no health log");
  return parse_health({page.data(), page.size()});
}

std::string controller_of(const std::string& sysfs, const std::string& device) {
  std::error_code error;
  fs::path folder = fs::canonical(fs::path(sysfs) / "dev/block" / device, error);
  if (error) return {};
  std::string name = controller_in(folder);
  for (fs::directory_iterator below(folder / "slaves", error);
       name.empty() && !error && below != fs::directory_iterator(); below.increment(error)) {
    std::error_code ignored;
    name = controller_in(fs::canonical(below->path(), ignored));
  }
  return name;
}

}  // namespace spark::doctor
