// The current place of a dataset's source.
#pragma once

#include <chrono>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "daemon/config/model.hpp"
#include "daemon/datasets/datasets.hpp"
#include "daemon/host_snapshot.hpp"
#include "daemon/volumes/volume/volume_set.hpp"

namespace spark {

// NotFound if its volume is not in the configuration, Unavailable while that volume is not ready: the
// existence of the mount point proves nothing.
Result<datasets::SourcePlace> find_source(const config::Dataset& dataset, const volumes::VolumeSet& volumes,
                                          HostSnapshot& snapshot);

// An outage that lasts no longer is no reason to use old data: links reconnect, and targets start again.
inline constexpr std::chrono::seconds kShortOutage{30};
// Its volume is on its first attempt, or was ready a moment ago.
bool may_be_back_soon(const config::Dataset& dataset, const volumes::VolumeSet& volumes, WallTime now);

}  // namespace spark
