// Reads from kubelet's records which of this driver's volumes it has on this node.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "base/result.hpp"

namespace spark::csi {

// kubelet records a volume before it requests it, and deletes the record after the volume was unpublished:
// KUBELET/pods/UID/volumes/kubernetes.io~csi/NAME/vol_data.json. Returns an error, not an empty set, if the
// records can't be read or contain no pod at all, for example if another folder was mounted instead of
// kubelet's.
Result<std::set<std::string>> volumes_of_pods(const std::filesystem::path& kubelet);

}  // namespace spark::csi
