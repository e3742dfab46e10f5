#include "csi/status.hpp"

#include "base/text.hpp"

namespace spark::csi {
namespace {

// A Kubernetes event has at most 1,024 bytes, including kubelet's own text.
constexpr std::size_t kLongest = 800;

Code code_of(Errc kind) {
  switch (kind) {
    case Errc::Invalid:
      return Code::InvalidArgument;
    case Errc::NotFound:
      return Code::NotFound;
    case Errc::Unavailable:
      return Code::Unavailable;
    case Errc::NoSpace:
      return Code::ResourceExhausted;
    case Errc::Mismatch:
      return Code::DataLoss;
    case Errc::Refused:
    case Errc::Unsupported:
      return Code::FailedPrecondition;
    case Errc::Denied:
      return Code::PermissionDenied;
    case Errc::TimedOut:
    case Errc::Cancelled:
      return Code::Aborted;
    case Errc::Failed:
      return Code::Internal;
  }
  return Code::Internal;
}

}  // namespace

Status status_of(const Error& error) {
  return {code_of(error.kind), cut_short(printable(error.message()), kLongest)};
}

}  // namespace spark::csi
