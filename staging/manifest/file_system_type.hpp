// Properties of a file system that follow from its type.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace spark::staging {

// A type as in mountinfo. Other hosts change its files, and nothing tells this host of it.
constexpr bool is_of_network(std::string_view type) {
  constexpr std::array<std::string_view, 12> kOfNetwork = {"nfs",    "nfs4",      "cifs", "smb3",
                                                           "9p",     "virtiofs",  "afs",  "ceph",
                                                           "lustre", "glusterfs", "gpfs", "beegfs"};
  return std::ranges::find(kOfNetwork, type) != kOfNetwork.end() || type == "fuse" ||
         type.starts_with("fuse.");
}

}  // namespace spark::staging
