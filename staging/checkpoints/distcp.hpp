// Checkpoints of torch.distributed.checkpoint.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace spark::staging {

// Finds "__RANK_NUMBER.distcp" in the bytes of a pickle, which contain its strings unchanged. The pickle is
// never loaded.
std::set<std::string> data_files_in(std::string_view metadata);

}  // namespace spark::staging
