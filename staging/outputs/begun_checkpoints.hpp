// Checkpoints of several hosts that are not published yet: some hosts' shards are on the volume.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace spark::staging {

struct BegunCheckpoint {
  std::string name;
  std::int64_t own_written = 0;  // TreeTotals::written of the source of this host's shard; 0: it is not there
  bool has_others = false;       // another host's shard is there
  // Changes while other hosts send: their shards and unfinished copies, and the bytes of these copies'
  // journals.
  std::uint64_t others_progress = 0;
};

// Those in the folder, in no order; `host`: this host's name.
Result<std::vector<BegunCheckpoint>> begun_checkpoints(const std::filesystem::path& folder,
                                                       const std::string& host);

}  // namespace spark::staging
