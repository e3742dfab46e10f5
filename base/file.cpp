#include "base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cerrno>

#include "base/file_system.hpp"
#include "base/text.hpp"

namespace spark {

namespace {

Result<std::string> read_all(int fd, const std::filesystem::path& path, std::size_t limit) {
  std::string content;
  char buffer[16384];
  for (;;) {
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(errno, "reading " + shown_path(path));
    if (got == 0) return content;
    content.append(buffer, static_cast<std::size_t>(got));
    if (content.size() > limit) {
      return fail(Errc::Invalid,
                  "reading " + shown_path(path) + ": larger than " + std::to_string(limit) + " bytes");
    }
  }
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path, std::size_t limit) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) return fail_errno(errno, "opening " + shown_path(path));
  return read_all(fd.get(), path, limit);
}

Result<std::string> read_regular_file(const std::filesystem::path& path, std::size_t limit) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) return fail_errno(errno, "opening " + shown_path(path));
  if (!S_ISREG(info.st_mode))
    return fail(Errc::Invalid, "reading " + shown_path(path) + ": it is no regular file");
  return read_all(fd.get(), path, limit);
}

Result<std::string> read_line_file(const std::filesystem::path& path) {
  auto content = read_file(path);
  if (!content) return content;
  return std::string(trim(*content));
}

namespace {

Result<> write_and_flush(const std::filesystem::path& path, std::string_view content, unsigned mode) {
  const std::string name = shown_path(path);
  ::unlink(path.c_str());  // who may write to its folder could own a file of that name, and read this one
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (!fd) return fail_errno(errno, "creating " + name);
  if (::fchmod(fd.get(), mode) != 0) return fail_errno(errno, "setting the mode of " + name);  // no umask
  if (const int failed = write_all(fd.get(), content)) return fail_errno(failed, "writing " + name);
  if (::fsync(fd.get()) != 0) return fail_errno(errno, "flushing " + name);
  return {};
}

}  // namespace

int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(fd, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return 0;
}

Result<std::filesystem::path> absolute_path(const std::filesystem::path& path) {
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  if (!error) return absolute.lexically_normal();
  return fail_errno(error.value(), "resolving " + shown_path(path) + " in the current folder",
                    "change to a folder that is there, or write the whole path");
}

Result<std::string> fresh_uuid(const SystemRoot& root) {
  return read_line_file(root / "proc/sys/kernel/random/uuid");
}

std::string boot_id(const SystemRoot& root) {
  return read_line_file(root / "proc/sys/kernel/random/boot_id").value_or("");
}

std::string host_name() {
  char name[256] = "";
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "";
}

std::string kernel_release() {
  utsname names{};
  ::uname(&names);
  return names.release;
}

PageBuffer make_page_buffer(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  const std::size_t pages = std::max<std::size_t>(1, (bytes + kPage - 1) / kPage);
  return {std::aligned_alloc(kPage, pages * kPage), &std::free};
}

Result<> write_file_atomically(const std::filesystem::path& path, std::string_view content, unsigned mode) {
  std::filesystem::path temporary = path;
  temporary += "." + std::to_string(::getpid()) + ".new";
  if (auto written = write_and_flush(temporary, content, mode); !written) {
    ::unlink(temporary.c_str());
    return written;
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const int number = errno;
    ::unlink(temporary.c_str());
    return fail_errno(number, "replacing " + shown_path(path));
  }
  return flush_folder(path.parent_path());
}

std::vector<std::filesystem::path> list_folder(const std::filesystem::path& folder, std::error_code& error) {
  std::vector<std::filesystem::path> entries;
  std::filesystem::directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error))
    entries.push_back(entry->path());
  return entries;
}

std::vector<std::filesystem::path> list_folder(const std::filesystem::path& folder) {
  std::error_code ignored;
  return list_folder(folder, ignored);
}

std::vector<std::string> names_in_folder(const std::filesystem::path& folder, std::error_code& error) {
  std::vector<std::string> names;
  for (const std::filesystem::path& entry : list_folder(folder, error)) names.push_back(entry.filename());
  return names;
}

std::vector<std::string> names_in_folder(const std::filesystem::path& folder) {
  std::error_code ignored;
  return names_in_folder(folder, ignored);
}

Result<> flush_folder(const std::filesystem::path& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) {
    return fail_errno(errno, "flushing folder " + shown_path(folder));
  }
  return {};
}

}  // namespace spark
