// kubelet's request for a volume of a pod, validated. It includes text written by the pod's author.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace spark::csi {

inline constexpr char kDriver[] = "stage.spark-stage.io";

// The request as received.
struct PublishRequest {
  std::string volume_id, target_path;
  bool is_mount = false, is_block = false;  // the capability's access type; both false: it is missing
  std::vector<std::string> mount_flags;
  std::map<std::string, std::string> context;  // the pod's volumeAttributes, and kubelet's additions
};

struct Publication {
  std::string volume;            // ID
  std::filesystem::path target;  // absolute and normalised
  std::string dataset;           // its name in the configuration; empty for an output
  std::string output;            // its name in the configuration; empty for a dataset
  std::string pod_namespace;     // empty: unknown
  std::string pod;               // "team-a/train-0", for messages; empty: unknown
  bool now = false;              // the pod starts before the copy is complete
  std::int64_t generation = 0;   // that is mounted already, and only has to be leased; 0: none

  bool is_output() const { return !output.empty(); }
};

// Invalid: an argument is missing or wrong.
Result<Publication> read_publication(const PublishRequest& request);
// Check the arguments of the other calls.
Result<> check_volume_id(std::string_view id);
Result<std::filesystem::path> read_target_path(const std::string& path);

}  // namespace spark::csi
