// What is on the targets: namespaces, and the file systems on them. The truth that survives every host.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "daemon/mounts/filesystems/published.hpp"
#include "daemon/mounts/filesystems/superblock.hpp"
#include "daemon/sim/reservations.hpp"
#include "nvmetcp/types.hpp"

namespace spark::histories {

// A file system as it is on the disk, readable by every host.
struct FileSystem {
  std::string type, uuid;
  SteadyTime made{};  // on this disk, by a person
  Bytes bytes = 0;
  bool is_open = false;  // ext4: needs_recovery; xfs: its log is not clean
  std::uint64_t stamp = 1;
  std::uint64_t mounts = 1;  // for writing; ext4 counts them
  std::string damage;
  bool has_mmp = false, mmp_open = false;
  bool is_mmp_claim = false;  // mmp_open: by the claim of a mount that is to follow (mounts/mmp_claim.hpp)
  unsigned mmp_interval = 5;
  std::uint32_t mmp_sequence = 0;
  std::string mmp_node;
  std::set<int> records;  // that programs wrote
  std::optional<mounts::Published> published;
  bool is_writer_announced = false;
  int writer = 0;  // the mount that wrote last: Super::id; 0: none
  bool is_writer_by_hand = false;
  unsigned by_hand_writes = 0;  // how often a person's mount, or a person, has changed it
  // `writer` had waited in its kernel to write, and could not be called back: Super::is_in_call, is_sending.
  bool is_writer_late = false;
};

// A namespace of a target.
struct Disk {
  std::string name;     // for the story: "disk 1"
  std::string ns_uuid;  // empty: the target gives none
  Bytes bytes = 0;
  FileSystem fs;
  sim::KeptReservations reservations;
  bool keeps_reservations = false;  // through a restart of the target
  bool is_unfenced = false;         // a host has it with `fence: none`, so an operator accepts two writers

  // The host ID that holds the reservation; empty: none.
  std::string holder();
};

mounts::Superblock superblock_of(const Disk& disk);

// A storage server with one address, perhaps behind a name.
struct Target {
  std::string name, host_name, address;  // host_name empty: configured by its address
  bool is_up = true;
  // NQN → namespace ID → disk: as offered now, and as configured there.
  std::map<std::string, std::map<std::uint32_t, Disk*>> offered, meant;
};

}  // namespace spark::histories
