// The mount at a volume's mount point, as checked by this daemon. Only this record allows a step that shuts a
// file system down or changes how it is mounted; an unmount and a flush need its OwnMount.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "daemon/volumes/place.hpp"
#include "daemon/volumes/status.hpp"

namespace spark::volumes {

// Made for a new mount and for one that existed before, after the same checks: the device's superblock is
// that of the volume's file system, and this host may use it as configured. It ends when the mount table
// shows another mount (VolumeContext::look_at_mount). All knowledge about this mount is here, so that nothing
// outlives it.
struct CheckedMount : MountedFacts {
  explicit CheckedMount(OwnMount its_mount) : mount(std::move(its_mount)) {}

  OwnMount mount;
  std::string device;  // "/dev/nvme3n1"; empty for NFS
  std::string uuid;    // of the file system; empty for NFS
  bool is_writer = false;
  bool is_changing_writing = false;  // a worker publishes it, or makes it writable again
  unsigned changes = 0;              // how often that has begun or ended

  std::uint64_t stamp = 0;   // of the superblock, for a reader: when it was mounted; 0 means unknown
  bool is_outdated = false;  // a writer has closed a newer state

  // For a writer, of the superblock at the last probe that found the fence intact; 0 means unknown.
  std::uint64_t held_stamp = 0, held_mounts = 0;
  SteadyTime held_at{};
  WallTime held_at_wall{};  // goes on while the host sleeps
  bool is_held_recorded = false;
  std::string mmp_node;  // this host's name in multi-mount protection at the first probe

  // Adopted below another mount, where the kernel does not say which file system it has mounted: checked
  // again once programs reach it.
  bool is_hidden = false;

  bool is_broken = false;     // found shut down, or to be shut down
  bool is_stopped = false;    // shut down by this daemon: its unmount writes no data
  bool is_exchanged = false;  // another file system was found on its device
  std::string fence_lost;     // why this host may not write, while it is still mounted
};

}  // namespace spark::volumes
