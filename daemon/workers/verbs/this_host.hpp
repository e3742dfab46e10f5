// The name of this host, which identifies its shards on a volume.
#pragma once

#include <string>

#include "base/result.hpp"

namespace spark::workers {

Result<std::string> this_host();

}  // namespace spark::workers
