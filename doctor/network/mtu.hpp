// Whether packets of full size reach a target: echo requests that no router may cut in pieces.
#pragma once

#include <string>

#include "doctor/checks/host.hpp"

namespace spark::doctor {

struct PathSize {
  bool answers = false;  // to small requests
  unsigned works = 0;    // the largest size of packet that came back, at most the card's MTU
};

// Unavailable: `ping` can't be run here.
Result<PathSize> probe_path(const Host& host, const std::string& address, const std::string& interface,
                            unsigned mtu);

inline constexpr unsigned kProbePackets = 5;  // of each size

}  // namespace spark::doctor
