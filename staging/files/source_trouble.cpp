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

Error with_source_trouble(Error error) {
  const bool is_device = is_medium_error(error.number) || std::ranges::count(kAway, error.number) > 0;
  error = with_change(std::move(error));
  if (!error.is_of_source || !is_device) return error;
  error.kind = Errc::Unavailable;
  if (error.hint.empty()) error.hint = "the copied part stays; the same request resumes from it";
  return error;
}

Error with_change(Error error) {
  if (!error.is_of_source) return error;
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
