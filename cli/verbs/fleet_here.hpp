// Which address of this host the others of its fleet reach, and who they are.
#pragma once

#include "cli/join/fleet_text.hpp"
#include "cli/verbs/fleet_join.hpp"

namespace spark::cli {

constexpr std::uint16_t kFleetPort = 7789;  // where a host listens and is looked for, unless a port is given

// `file`: the configuration's absolute path; `there`: its section, empty if it has none. Without a peer among
// the options, those of the section, without this host. Invalid: the others can't reach this host at
// `listen`, or a peer is this host. Refused: a peer has another name already.
Result<FleetHere> wanted_fleet(const std::filesystem::path& file, const JoinOptions& options,
                               const config::FleetSettings& there);

// Where that peer reaches this host: at the address of the route to it, if this host listens there. "ADDRESS"
// if it listens on all and no route is known.
nvmetcp::Portal reached_from(const FleetHere& fleet, const nvmetcp::Portal& peer);

}  // namespace spark::cli
