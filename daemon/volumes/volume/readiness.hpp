// Whether a volume can be read now, for requests that need its data.
#pragma once

#include "base/result.hpp"
#include "daemon/volumes/volume/volume.hpp"

namespace spark::volumes {

// Unavailable unless it is ready, with the command that makes it ready or waits for it.
Result<> check_ready(const Volume& volume);

}  // namespace spark::volumes
