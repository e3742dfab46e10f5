#include "tests/support/loop_device.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "base/child.hpp"

namespace spark::test {
namespace {

[[noreturn]] void give_up(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

void set_writable(const UniqueFd& device) {
  const int is_read_only = 0;
  ::ioctl(device.get(), BLKROSET, &is_read_only);
}

// A test that runs beside this one and makes a namespace of its own would copy this one's mounts into it, and
// keep them in use after they are unmounted here.
std::string own_mount_namespace() {
  if (::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0)
    return {};
  return std::string("no mount namespace of its own: ") + std::strerror(errno);
}

}  // namespace

std::string run_tool(const std::vector<std::string>& argv) {
  const auto output = run_child(argv, std::chrono::seconds(60));
  if (!output) throw std::runtime_error(argv[0] + ": " + output.error().message());
  if (output->exit_status != 0) throw std::runtime_error(argv[0] + ": " + output->out + output->err);
  return output->out;
}

void make_image(const std::filesystem::path& image, std::size_t bytes, std::vector<std::string> mkfs) {
  std::ofstream(image).close();
  std::filesystem::resize_file(image, bytes);
  mkfs.push_back(image);
  run_tool(mkfs);
}

LoopDevice::LoopDevice(const std::filesystem::path& image) {
  const UniqueFd control(::open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  if (!control) give_up("/dev/loop-control");
  const UniqueFd file(::open(image.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) give_up(image);
  // Another test may take the free device in between.
  for (int attempt = 0; attempt < 100; ++attempt) {
    const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) give_up("LOOP_CTL_GET_FREE");
    path_ = "/dev/loop" + std::to_string(number);
    fd_.reset(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
    if (!fd_) continue;
    loop_config config{};
    config.fd = static_cast<__u32>(file.get());
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    if (::ioctl(fd_.get(), LOOP_CONFIGURE, &config) == 0) {
      set_writable(fd_);  // a test that was killed may have left it read-only
      return;
    }
    if (errno != EBUSY) give_up("LOOP_CONFIGURE");
  }
  throw std::runtime_error("no free loop device");
}

LoopDevice::~LoopDevice() {
  if (fd_) set_writable(fd_);
}

std::string why_no_loop_mounts() {
  if (::geteuid() != 0) return "needs root";
  if (::access("/dev/loop-control", R_OK | W_OK) != 0) return "there are no loop devices here";
  static const std::string why = own_mount_namespace();
  return why;
}

}  // namespace spark::test
