// The command line of spark-stage-csi.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.hpp"

namespace spark::csi {

struct Options {
  std::string socket;  // socket of spark-staged
  std::filesystem::path kubelet_dir = "/var/lib/kubelet";
  std::string node_id;  // the cluster's name for this node
  bool logs_json = false;
  bool shows_help = false, shows_version = false;

  std::filesystem::path csi_socket() const;
  std::filesystem::path registration_socket() const;
};

// Invalid: an option is unknown or can't be used.
Result<Options> read_options(int argc, char** argv);
extern const char kHelp[];

}  // namespace spark::csi
