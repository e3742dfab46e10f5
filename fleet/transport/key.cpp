#include "fleet/transport/key.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/text.hpp"

namespace spark::fleet {
namespace {

constexpr std::size_t kKeyBytes = 32;

}  // namespace

Result<std::string> new_key() {
  std::array<std::byte, kKeyBytes> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return fail_errno(errno, "asking the kernel for random numbers");
  return hex_of(bytes);
}

Result<std::string> parse_key(std::string_view text) {
  std::string key = lower(std::string(trim(text)));
  if (key.size() != 2 * kKeyBytes || key.find_first_not_of(kHexDigits) != std::string::npos)
    return fail(Errc::Invalid, "it is not 64 hexadecimal digits", "`spark-stage fleet key` makes a new one");
  return key;
}

Result<std::string> read_key(const std::filesystem::path& file) {
  const std::string shown = printable(file.native());
  const UniqueFd opened(::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (!opened || ::fstat(opened.get(), &info) != 0)
    return fail_errno(errno, "reading the fleet's key " + shown,
                      "`spark-stage fleet key` makes a new one; every host needs the same");
  if (info.st_uid != 0 && info.st_uid != ::geteuid())
    return fail(Errc::Refused,
                "the fleet's key " + shown + " belongs to another user, uid " + std::to_string(info.st_uid),
                "chown root: " + shown);
  if ((info.st_mode & 077) != 0)
    return fail(Errc::Refused, "the fleet's key " + shown + " can be read by other users of this host",
                "chmod 600 " + shown + ", and make a new one if another user may have read it");
  const auto text = read_line_file(held_path(opened));
  if (!text) return fail_with(text.error(), "reading the fleet's key");
  auto key = parse_key(*text);
  if (!key) return fail_with(key.error(), "the fleet's key " + shown);
  return key;
}

bool KeyWatch::is_replaced() {
  const auto now = read_key(file_);
  const bool was_missing = std::exchange(was_missing_, !now);
  return now ? *now != key_ : was_missing;
}

}  // namespace spark::fleet
