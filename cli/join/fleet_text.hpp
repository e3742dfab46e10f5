// The section `fleet` in a configuration's text. What a person wrote in the file stays: lines are added, and
// none is changed but that of `peers`.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "daemon/config/model.hpp"

namespace spark::cli {

struct FleetHere {
  nvmetcp::Portal listen;  // the first one of the section
  std::filesystem::path key_file;
  struct Peer {
    std::string name;
    nvmetcp::Portal address;  // with a port; without one in the text if it is that of `listen`
  };
  std::vector<Peer> peers;
  std::vector<nvmetcp::Portal> other_listens = {};  // the rest of them
};

std::vector<FleetHere::Peer> peers_of(const config::FleetSettings& settings);

// The peer at this address; null: none is. Port 0: at any port, and if there are several, that of this name.
const FleetHere::Peer* find_peer(const std::vector<FleetHere::Peer>& peers, const nvmetcp::Portal& address,
                                 const std::string& name = {});

// No line, or empty ones and comments alone: with_fleet() makes a whole configuration of it.
bool is_without_settings(const std::string& yaml);

// The text with the section, or with these peers in the section that it has; the same text if nothing lacks.
// An empty text becomes a whole configuration. Invalid: the text is no valid configuration. Refused: its
// section says something else, or is written in a way that can't be added to; the hint has what to write.
Result<std::string> with_fleet(const std::string& yaml, const std::string& file_name, const FleetHere& fleet);

}  // namespace spark::cli
