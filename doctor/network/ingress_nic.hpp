// The card that received a target's data: the cards' own counters prove the route.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "doctor/network/destinations.hpp"
#include "doctor/network/nics.hpp"
#include "migration/survey/fabric_devices.hpp"

namespace spark::doctor {

// The card that took in `bytes` between two looks at the counters: `expected` if that did, whatever else came
// in; else another that did; empty: none.
std::string card_that_grew(const std::vector<Nic>& before, const std::vector<Nic>& after,
                           const std::string& expected, Bytes bytes);

// A namespace with all live connections to that numeric address by that interface; empty: none.
std::string device_by(const host::Survey& survey, const std::string& address, const std::string& interface);

struct IngressNic {
  std::string card;   // empty: no counter tells, or nothing was read
  bool hung = false;  // the read had no answer by its deadline
  std::string error;  // of another kind
};

// Reads the beginning of a namespace and looks which card it came in by.
IngressNic read_and_look(const Host& host, const std::string& device, const std::string& expected);

// Reads the first MiB of a device, with direct I/O: how much there was. May block indefinitely: call it in a
// child process.
Result<Bytes> read_beginning(const std::string& path);

}  // namespace spark::doctor
