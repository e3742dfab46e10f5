// nvme-cli's own lists of connections: /etc/nvme/discovery.conf and /etc/nvme/config.json.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"
#include "migration/survey/connect_command.hpp"

namespace spark::host {

// One connection a line, as options of `nvme discover`; the subsystem is whatever the target offers.
std::vector<ManualConnection> parse_discovery_conf(std::string_view text);

// Unknown parts are in each connection's `unknown`. Invalid: it is no such JSON.
Result<std::vector<ManualConnection>> parse_config_json(std::string_view text);

}  // namespace spark::host
