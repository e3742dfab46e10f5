#include "daemon/mounts/filesystems/direct_read.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "base/text.hpp"

namespace spark::mounts {
namespace {

constexpr std::size_t kAlignment = 4096;  // a multiple of every logical block size

Result<Bytes> size_of(int fd, const std::string& name) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return fail_errno(errno, "looking at " + name);
  if (S_ISREG(status.st_mode)) return static_cast<Bytes>(status.st_size);
  std::uint64_t size = 0;
  if (!S_ISBLK(status.st_mode)) return fail(Errc::Invalid, name + " is not a block device");
  if (::ioctl(fd, BLKGETSIZE64, &size) != 0) return fail_errno(errno, "asking for the size of " + name);
  return size;
}

}  // namespace

Result<DirectReader> DirectReader::open(const std::filesystem::path& device) {
  const std::string name = printable(device.native());
  UniqueFd fd(::open(device.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC | O_NONBLOCK));
  if (!fd) return fail_errno(errno, "opening " + name);
  const auto size = size_of(fd.get(), name);
  if (!size) return size.take_error();
  return DirectReader(std::move(fd), *size, name);
}

Result<std::vector<std::uint8_t>> DirectReader::read(Bytes offset, std::size_t length) const {
  const Bytes start = offset / kAlignment * kAlignment;
  const std::size_t lead = static_cast<std::size_t>(offset - start);
  const std::size_t whole = (lead + length + kAlignment - 1) / kAlignment * kAlignment;
  const PageBuffer buffer = make_page_buffer(whole);
  if (!buffer) return fail_errno(ENOMEM, "reading " + name_);
  auto* bytes = static_cast<std::uint8_t*>(buffer.get());
  std::size_t got = 0;
  while (got < whole) {
    const ssize_t count = ::pread(fd_.get(), bytes + got, whole - got, static_cast<off_t>(start + got));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno(errno, "reading " + name_ + " at byte " + std::to_string(start + got));
    got += static_cast<std::size_t>(count);
    // Short and unaligned: the end of the device.
    if (count == 0 || got % kAlignment != 0) break;
  }
  if (got <= lead) return std::vector<std::uint8_t>();
  return std::vector<std::uint8_t>(bytes + lead, bytes + std::min(got, lead + length));
}

}  // namespace spark::mounts
