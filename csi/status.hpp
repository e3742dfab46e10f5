// How a call of kubelet's ended.
#pragma once

#include <string>

#include "base/result.hpp"

namespace spark::csi {

// gRPC's own numbers.
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
  std::string sentence;  // stands in the pod's events
  bool is_ok() const { return code == Code::Ok; }
};

// TimedOut and Cancelled are Aborted: the staging goes on, or may begin again.
Status status_of(const Error& error);

}  // namespace spark::csi
