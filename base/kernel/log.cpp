#include "base/kernel/log.hpp"

#include <fcntl.h>

#include <array>
#include <cerrno>

#include "base/text.hpp"

namespace spark {
namespace {

constexpr int kMostRecords = 10'000;

}  // namespace

KernelLog::KernelLog(const SystemRoot& root)
    : fd_(::open((root / "dev/kmsg").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
  if (fd_ && ::lseek(fd_.get(), 0, SEEK_END) < 0) fd_.reset();
}

std::vector<std::string> KernelLog::lines(std::string_view word) {
  std::vector<std::string> found;
  std::array<char, 8192> record{};
  for (int i = 0; fd_ && i < kMostRecords; ++i) {
    const ssize_t got = ::read(fd_.get(), record.data(), record.size());
    if (got < 0 && (errno == EPIPE || errno == EINTR)) continue;  // EPIPE: records were overwritten; go on
    if (got <= 0) break;
    std::string message = message_of_kmsg_record({record.data(), static_cast<std::size_t>(got)});
    if (message.find(word) != std::string::npos) found.push_back(std::move(message));
  }
  return found;
}

std::string message_of_kmsg_record(std::string_view record) {
  const std::size_t prefix = record.find(';');
  if (prefix == std::string_view::npos) return {};
  record.remove_prefix(prefix + 1);
  return printable(trim(record.substr(0, record.find('\n'))));
}

}  // namespace spark
