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

}  // namespace spark
