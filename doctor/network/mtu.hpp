// Whether a target gets packets of the size that TCP uses to it: echo requests that no router may cut in
// pieces.
#pragma once

#include <string>

#include "doctor/checks/host.hpp"

namespace spark::doctor {

struct PathSize {
  bool answers = false;  // to small requests
  // The largest size of packet that came back, at most `packet`. 0: none of a usual size; a firewall may drop
  // large echo requests alone, so that says nothing of data.
  unsigned works = 0;
};

// Unavailable: `ping` can't be run here.
Result<PathSize> probe_path(const Host& host, const std::string& address, const std::string& interface,
                            unsigned packet);

inline constexpr unsigned kProbePackets = 5;  // of each size

}  // namespace spark::doctor
