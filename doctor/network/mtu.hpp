// Whether a target gets packets of the size that TCP uses to it: echo requests that no router may cut in
// pieces.
#pragma once

#include <string>

#include "doctor/checks/host.hpp"

namespace spark::doctor {

struct PathSize {
  bool answers = false;  // to small requests
  unsigned works = 0;    // the largest size of packet that came back, at most `packet`
};

// Unavailable: `ping` can't be run here.
Result<PathSize> probe_path(const Host& host, const std::string& address, const std::string& interface,
                            unsigned packet);

inline constexpr unsigned kProbePackets = 5;  // of each size

}  // namespace spark::doctor
