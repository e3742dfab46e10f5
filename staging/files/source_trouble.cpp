#include "staging/files/source_trouble.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace spark::staging {
namespace {

// Errors of block devices, NVMe and NFS while they are unreachable, and of file systems that have noticed it.
constexpr std::array kAway = {ENODEV,       ENXIO,    ETIMEDOUT,   ENOLINK,      EREMOTEIO,
                              ESTALE,       ENOTCONN, ECONNRESET,  ECONNREFUSED, EHOSTDOWN,
                              EHOSTUNREACH, ENETDOWN, ENETUNREACH, ESHUTDOWN,    EBADE};

}  // namespace

bool is_medium_error(int number) {
  return number == EIO || number == ENODATA || number == EILSEQ;
}

bool is_damage(const Error& error) {
  return error.kind == Errc::Mismatch || is_medium_error(error.number);
}

namespace {

// Every message names its object. A path of the copy may contain the source's: "/data" and "/cache/data".
bool is_about(const Error& error, const Tree& source) {
  const std::string shown = source.shown("");
  for (std::size_t at = error.what.find(shown); at != std::string::npos;
       at = error.what.find(shown, at + 1)) {
    const std::size_t end = at + shown.size();
    const bool begins = at == 0 || error.what[at - 1] == ' ';
    const bool ends = shown.ends_with('/') || end == error.what.size() || error.what[end] == '/' ||
                      error.what[end] == ':' || error.what[end] == ' ';
    if (begins && ends) return true;
  }
  return false;
}

}  // namespace

Error with_source_trouble(Error error, const Tree& source) {
  const bool is_device = is_medium_error(error.number) || std::ranges::count(kAway, error.number) > 0;
  if (!is_about(error, source)) return error;
  error = with_change(std::move(error), source);
  if (!is_device) return error;
  error.kind = Errc::Unavailable;
  if (error.hint.empty()) error.hint = "the copied part stays; the same request resumes from it";
  return error;
}

Error with_change(Error error, const Tree& source) {
  if (!is_about(error, source)) return error;
  if (error.number != ENOENT) return with_denial(std::move(error));
  error.kind = Errc::Mismatch;
  if (error.hint.empty()) error.hint = "it went away while the source was read; try again";
  return error;
}

Error with_denial(Error error) {
  if (::geteuid() != 0 || error.kind != Errc::Denied) return error;
  error.hint =
      "it was read as root, and the source denies root: an NFS export with root_squash, or a user's FUSE "
      "mount without allow_root";
  return error;
}

}  // namespace spark::staging
