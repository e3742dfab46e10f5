// Which of this driver's volumes kubelet has on this node, by its own records.
#pragma once

#include <filesystem>
#include <set>
#include <string>

#include "base/result.hpp"

namespace spark::csi {

// kubelet records a volume before it asks for it, and forgets it after it was taken away:
// KUBELET/pods/UID/volumes/kubernetes.io~csi/NAME/vol_data.json. An error tells nothing about any volume; so
// does a node without a single pod, as where kubelet's folder is not what was mounted.
Result<std::set<std::string>> volumes_of_pods(const std::filesystem::path& kubelet);

}  // namespace spark::csi
