// Proof that a mount is the volume's. Steps that flush, unmount, shut down or change a mount take it, and
// their workers compare it with the mount table again before they act.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>

#include "base/kernel/mount_table.hpp"

namespace spark::config {
struct Volume;
}

namespace spark::volumes {

struct Seams;
struct Standing;

class OwnMount {
 public:
  const std::filesystem::path& target() const { return target_; }
  // The kernel's number. It gives it to the next mount once this one is gone, hence the options.
  int id() const { return id_; }
  dev_t device_number() const { return device_number_; }
  mounts::MountNumbers numbers() const { return {id_, device_number_}; }

  // For records: the same text for the same mount, until the host is restarted.
  std::string text() const {
    return std::to_string(id_) + " " + std::to_string(device_number_) + " " + target_.native() + " " +
           options_;
  }

  bool operator==(const OwnMount&) const = default;

 private:
  friend Standing look_at_place(const Seams& seams, const config::Volume& volume);
  friend std::optional<OwnMount> writer_elsewhere(const Seams& seams, const config::Volume& volume);
  explicit OwnMount(const mounts::Mount& mount)
      : target_(mount.target),
        id_(mount.id),
        device_number_(mount.device_number),
        options_(mount.options.substr(std::min(mount.options.find(','), mount.options.size()))) {}

  std::filesystem::path target_;
  int id_;
  dev_t device_number_;
  std::string options_;  // without "ro" or "rw", which a publication changes
};

}  // namespace spark::volumes
