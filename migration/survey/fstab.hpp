// /etc/fstab, line by line. Only read: this project never changes it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "base/kernel/mount_table.hpp"

namespace spark::host {

struct FstabLine {
  int number = 0;      // from 1
  std::string source;  // "/dev/nvme1n1", "UUID=…", "192.168.0.98:/data"
  std::string mount;
  std::string type;
  std::string options;    // comma-separated
  int pass = 0;           // the order of fsck at boot; 0: none
  std::string text = {};  // as it stands in the file
  bool is_nfs() const { return type == "nfs" || type == "nfs4"; }
  bool is_block_device() const;  // by whatever name
};

// Lines that mount something; comments and lines with fewer than two columns are left out.
std::vector<FstabLine> parse_fstab(std::string_view text);

// Other lines of a line's mount point.
struct OtherLines {
  std::vector<std::string> on_request;  // as they stand in the file: with `noauto`
  int at_boot = 0;                      // the number of the first one without; 0: none
};
OtherLines other_lines_of(const FstabLine& line, const std::vector<FstabLine>& all);

// As mount(8) takes a mount point: "/mnt/data/" is "/mnt/data".
std::string plain_mount_point(const std::string& mount);

// Without symbolic links, as the kernel names it. Nothing at or below a mount is looked at, which could hang:
// what is behind one stays as it is.
std::string real_path(const SystemRoot& root, const std::vector<mounts::Mount>& mounts,
                      const std::string& path);

// "/dev/nvme1n1" and "/dev/nvme1n1p1": a name that the order of connecting gives.
bool is_kernel_name(std::string_view source);

}  // namespace spark::host
