// The links to the fleet's peers, measured with real data; and the rate at which targets are read.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "doctor/checks/host.hpp"
#include "fleet/link/judge.hpp"
#include "fleet/link/measure.hpp"
#include "migration/survey/survey.hpp"

namespace spark::doctor {

// All that moves data; a test gives its own.
struct LinkMeter {
  std::function<Result<fleet::LinkEnd>(const fleet::Endpoint& peer)> look;
  std::function<fleet::WayRate(const fleet::Endpoint& peer, fleet::Way way)> measure;
  std::function<Result<double>(const std::string& device)> read;  // "/dev/nvme1n1": bytes per second
  std::function<void(const std::string& words)> progress;         // "spark2: receiving"
  std::optional<Error> error{};  // why no peer can be measured: there is no key, say
};

// Tests the links to these peers, or to all. NotFound: there is no such peer. Unavailable: the daemon does
// not run, or serves no peers.
Result<> test_links(const Host& host, const LinkMeter& meter, const std::vector<std::string>& names,
                    Report& report);

// Reads one namespace of each connected target, and compares the rate with what the cards of those paths can
// do that carried the reads.
void test_reads(const Host& host, const LinkMeter& meter, Report& report);

// The fastest of ethtool's supported link modes, in Mb/s; 0: none.
unsigned fastest_mode(const std::string& ethtool_output);

}  // namespace spark::doctor
