#include "cli/join/given_key.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <iterator>

#include "base/file.hpp"
#include "base/file_system.hpp"
#include "base/text.hpp"
#include "fleet/transport/key.hpp"

namespace spark::cli {
namespace {

// Of root, or of the user who runs sudo.
bool is_own(const struct stat& info) {
  const char* caller = ::getenv("SUDO_UID");
  return info.st_uid == 0 || info.st_uid == ::geteuid() ||
         (caller != nullptr && std::to_string(info.st_uid) == caller);
}

Result<std::string> text_in(const std::string& file) {
  constexpr std::size_t kMost = 4096;
  const std::string shown = printable(file), doing = "reading the key from " + shown;
  const UniqueFd opened(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  struct stat info {};
  if (!opened || ::fstat(opened.get(), &info) != 0) return fail_errno(errno, doing);
  if (!S_ISREG(info.st_mode)) return fail(Errc::Invalid, doing + ": it is no regular file");
  if (!is_own(info))
    return fail(Errc::Refused, shown + " belongs to another user, uid " + std::to_string(info.st_uid),
                "bring the key here again, into a file of your own or of root");
  if ((info.st_mode & 077) != 0)
    return fail(Errc::Refused, shown + " can be read or written by other users of this host",
                "if none of them has, `chmod 600 " + shown + "`; else bring the key here again");
  return read_file(held_path(opened), kMost);
}

}  // namespace

Result<std::string> given_key(std::istream& in, const std::string& file) {
  if (file.empty()) return std::string();
  const auto text = file == "-" ? std::string(std::istreambuf_iterator<char>(in), {}) : text_in(file);
  if (!text) return text.take_error();
  auto key = fleet::parse_key(*text);
  if (!key)
    return fail_with(key.error(),
                     "reading the key from " + (file == "-" ? "the standard input" : printable(file)));
  return key;
}

}  // namespace spark::cli
