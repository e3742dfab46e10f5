// Connections that no program may make automatically, by the host administrator's rules for all programs:
// /etc/nvme/exclusions.conf and exclusions.conf.d/*.conf (libnvme/design/EXCLUSIONS.md in
// linux-nvme/nvme-cli).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "base/result.hpp"
#include "nvmetcp/types.hpp"

namespace spark::nvmetcp {

// One line: a connection that has all of these values is excluded. Keys are those of `nvme connect`.
struct Exclusion {
  std::string place;  // "/etc/nvme/exclusions.conf:7"
  std::map<std::string, std::string> fields;
};

// A line that makes no sense excludes nothing, as the format wants it.
std::vector<Exclusion> parse_exclusions(std::string_view text, const std::string& file);

// All files; one that can't be read excludes nothing.
std::vector<Exclusion> read_exclusions(const SystemRoot& root);

// The first that excludes this connection.
std::optional<Exclusion> find_exclusion(const std::vector<Exclusion>& all, const std::string& subsystem,
                                        const Portal& numeric, const HostIdentity& host,
                                        const std::string& interface);

// Refused: the connection is excluded; the sentence says where.
Result<> check_not_excluded(const SystemRoot& root, const std::string& subsystem, const Portal& numeric,
                            const HostIdentity& host, const std::string& interface);

}  // namespace spark::nvmetcp
