// How much of a dataset is in this host's page cache.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"

namespace spark::bench {

// Bytes, estimated from a thousand pages all over the files of these folders, for any user who may read them.
// Reads no more than those pages. No value: a file system does not tell, or there are no files. May block:
// call it in a child process.
std::optional<Bytes> cached_data(const std::vector<std::string>& folders);

}  // namespace spark::bench
