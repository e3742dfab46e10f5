#include "base/result.hpp"

#include <array>
#include <cerrno>
#include <cstring>

namespace spark {
namespace {

struct KindRow {
  Errc kind;
  const char* name;
  int exit_status;
};

constexpr std::array kKinds = {
    KindRow{Errc::Failed, "failed", 1},           KindRow{Errc::Invalid, "invalid", 2},
    KindRow{Errc::NotFound, "not_found", 3},      KindRow{Errc::Unavailable, "unavailable", 4},
    KindRow{Errc::NoSpace, "no_space", 5},        KindRow{Errc::Mismatch, "mismatch", 6},
    KindRow{Errc::Refused, "refused", 7},         KindRow{Errc::Denied, "denied", 1},
    KindRow{Errc::Unsupported, "unsupported", 1}, KindRow{Errc::TimedOut, "timed_out", 124},
    KindRow{Errc::Cancelled, "cancelled", 130},
};

const KindRow& row(Errc kind) {
  for (const KindRow& candidate : kKinds) {
    if (candidate.kind == kind) return candidate;
  }
  return kKinds.front();
}

Errc kind_of_errno(int number) {
  switch (number) {
    case ENOSPC:
    case EDQUOT:
      return Errc::NoSpace;
    case ENOENT:
      return Errc::NotFound;
    case EACCES:
    case EPERM:
      return Errc::Denied;
    case ETIMEDOUT:
      return Errc::TimedOut;
    case EINTR:
      return Errc::Cancelled;
    case EOPNOTSUPP:
    case ENOSYS:
      return Errc::Unsupported;
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ECONNRESET:
      return Errc::Unavailable;
    default:
      return Errc::Failed;
  }
}

}  // namespace

std::string Error::message() const {
  return hint.empty() ? what : what + " - " + hint;
}

tl::unexpected<Error> fail(Errc kind, std::string what, std::string hint) {
  Error error{kind, std::move(what), std::move(hint)};
  return tl::unexpected<Error>(std::move(error));
}

tl::unexpected<Error> fail_errno(int number, std::string what, std::string hint) {
  Error error{kind_of_errno(number), std::move(what) + ": " + std::strerror(number), std::move(hint), number};
  return tl::unexpected<Error>(std::move(error));
}

tl::unexpected<Error> fail_with(Error error, const std::string& doing) {
  error.what = doing + ": " + error.what;
  return tl::unexpected<Error>(std::move(error));
}

int exit_status(Errc kind) {
  return row(kind).exit_status;
}

const char* to_string(Errc kind) {
  return row(kind).name;
}

Errc errc_from_string(std::string_view name) {
  for (const KindRow& candidate : kKinds) {
    if (name == candidate.name) return candidate.kind;
  }
  return Errc::Failed;
}

}  // namespace spark
