// The current place of a dataset's source.
#pragma once

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

// "volume datasets is lost since 2026-11-27T14:00:00Z: its device is gone"
std::string away_in_words(const config::Dataset& dataset, const volumes::VolumeSet& volumes);

}  // namespace spark
