// The result of a call by kubelet.
#pragma once

#include <string>

#include "base/result.hpp"

namespace spark::csi {

// Numbers of gRPC's status codes.
enum class Code {
  Ok = 0,
  InvalidArgument = 3,
  NotFound = 5,
  AlreadyExists = 6,
  PermissionDenied = 7,
  ResourceExhausted = 8,
  FailedPrecondition = 9,
  Aborted = 10,  // kubelet repeats the call
  Internal = 13,
  Unavailable = 14,
  DataLoss = 15,
};

struct Status {
  Code code = Code::Ok;
  std::string sentence;  // shown in the pod's events
  bool is_ok() const { return code == Code::Ok; }
};

// TimedOut and Cancelled become Aborted: the staging continues, or can be restarted.
Status status_of(const Error& error);

}  // namespace spark::csi
