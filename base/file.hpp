// Descriptors and whole small files.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace spark {

// Owns a descriptor; closes it once.
class UniqueFd {
 public:
  UniqueFd() = default;
  explicit UniqueFd(int fd) : fd_(fd) {}
  UniqueFd(UniqueFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~UniqueFd() { reset(); }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_ = -1;
};

// Where /sys, /proc, /dev and /etc are; a test points it at a tree of its own.
struct SystemRoot {
  std::filesystem::path path = "/";
  std::filesystem::path operator/(std::string_view below) const { return path / below; }
};

// Whole pages at a page's start, at least `bytes`: for direct I/O, and for devices. Null: there is no memory.
using PageBuffer = std::unique_ptr<void, decltype(&std::free)>;
PageBuffer make_page_buffer(std::size_t bytes);

// The whole file, at most `limit` bytes; longer is an error.
Result<std::string> read_file(const std::filesystem::path& path, std::size_t limit = 16 << 20);

// As read_file, for names that another user may have chosen: an error if it is a symbolic link, or no regular
// file: opening a FIFO would block.
Result<std::string> read_regular_file(const std::filesystem::path& path, std::size_t limit = 16 << 20);

// As read_file, trimmed of white space at both ends: for sysfs attributes and one-line files.
Result<std::string> read_line_file(const std::filesystem::path& path);

// From the current folder, and in plain form; an error if that folder is gone.
Result<std::filesystem::path> absolute_path(const std::filesystem::path& path);

// A new one at every call, from the kernel's random numbers; lower case.
Result<std::string> fresh_uuid(const SystemRoot& root);

// Of this start of the kernel; empty: unknown.
std::string boot_id(const SystemRoot& root);
// As `uname -n` and `uname -r` say.
std::string host_name();
std::string kernel_release();

// 0, or the errno of the write that failed.
int write_all(int fd, std::string_view text);

// Other readers see the old content or the new, also after power loss: temporary file, fsync, rename, fsync
// of the folder. It gets exactly this mode, whatever the umask is.
Result<> write_file_atomically(const std::filesystem::path& path, std::string_view content,
                               unsigned mode = 0644);

// What is in the folder, in the order of the file system: all that came before an error, which only the
// caller's `error` tells.
std::vector<std::filesystem::path> list_folder(const std::filesystem::path& folder);
std::vector<std::filesystem::path> list_folder(const std::filesystem::path& folder, std::error_code& error);
std::vector<std::string> names_in_folder(const std::filesystem::path& folder);
std::vector<std::string> names_in_folder(const std::filesystem::path& folder, std::error_code& error);

// Makes the names in it durable.
Result<> flush_folder(const std::filesystem::path& folder);

}  // namespace spark
