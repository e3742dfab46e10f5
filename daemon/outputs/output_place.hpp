// The place on a volume where this host may write, or read, published outputs.
#pragma once

#include "base/result.hpp"
#include "daemon/outputs/context.hpp"
#include "daemon/volumes/volume/volume_set.hpp"

namespace spark::outputs {

// See outputs::Context::find_volume and find_readable.
Result<VolumePlace> find_output_place(const std::string& name, const volumes::VolumeSet& volumes,
                                      bool is_simulated);
Result<VolumePlace> find_published_place(const std::string& name, const volumes::VolumeSet& volumes,
                                         bool is_simulated);

}  // namespace spark::outputs
