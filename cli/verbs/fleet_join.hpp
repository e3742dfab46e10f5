// `fleet join`: key, address and peers of this host.
#pragma once

#include <string>
#include <vector>

#include "cli/context.hpp"

namespace spark::cli {

struct JoinOptions {
  std::vector<std::string> peers;  // NAME=ADDRESS, an address or a host name, each with or without a port
  std::string listen, key_file;    // empty: chosen here; "-": the key comes from the standard input
};

// Every step is left out if it was taken before. Refused: this host is in a fleet already, in another way.
Result<int> join_fleet(Context& context, const JoinOptions& options);

}  // namespace spark::cli
