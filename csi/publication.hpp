// What kubelet asks for when a pod needs a volume, checked. What a pod's author wrote is among it.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace spark::csi {

inline constexpr char kDriver[] = "stage.spark-stage.io";

// As it came.
struct PublishRequest {
  std::string volume_id, target_path;
  bool is_mount = false, is_block = false;  // the capability's access type; neither: it is missing
  std::vector<std::string> mount_flags;
  std::map<std::string, std::string> context;  // the pod's volumeAttributes, and what kubelet adds
};

struct Publication {
  std::string volume;            // ID
  std::filesystem::path target;  // absolute and normal
  std::string dataset;           // its name in the configuration; empty: an output is wanted
  std::string output;            // its name in the configuration; empty: a dataset is wanted
  std::string pod_namespace;     // empty: not told
  std::string pod;               // "team-a/train-0", for people; empty: not told

  bool is_output() const { return !output.empty(); }
};

// Invalid: an argument is missing or wrong.
Result<Publication> read_publication(const PublishRequest& request);
// The arguments of the other calls.
Result<> check_volume_id(std::string_view id);
Result<std::filesystem::path> read_target_path(const std::string& path);

}  // namespace spark::csi
