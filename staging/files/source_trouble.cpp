#include "staging/files/source_trouble.hpp"

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

Error with_source_trouble(Error error, const Tree& source) {
  const bool is_device = is_medium_error(error.number) || std::ranges::count(kAway, error.number) > 0;
  // Every message names its object, and the copy has a different path.
  if (!is_device || error.what.find(source.shown("")) == std::string::npos) return error;
  error.kind = Errc::Unavailable;
  if (error.hint.empty()) error.hint = "what is copied stays; the same request goes on from there";
  return error;
}

}  // namespace spark::staging
