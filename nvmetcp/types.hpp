// Hosts, targets and connections, in the field's terms.
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"

namespace spark::nvmetcp {

inline constexpr const char* kDiscoveryNqn = "nqn.2014-08.org.nvmexpress.discovery";

// The identity of this host at every target: /etc/nvme/hostnqn and /etc/nvme/hostid.
struct HostIdentity {
  std::string nqn;
  std::string id;  // a UUID, lower case
};

// Where a target listens. `address` is an IP or a host name; a name is resolved at every attempt.
struct Portal {
  std::string address;
  std::uint16_t port = 4420;
  bool operator==(const Portal&) const = default;
};
// "10.0.0.5:4420", "[fd00::5]:4420", printable.
std::string to_string(const Portal& portal);

// The settings of a connection, as the configuration has them. All are passed to the kernel explicitly: none
// of its own defaults is relied on.
struct ConnectOptions {
  std::string interface;   // NIC name; empty: the kernel's route
  unsigned io_queues = 0;  // 0: min(8, CPUs)
  std::chrono::seconds keep_alive{5};
  std::chrono::seconds reconnect_delay{2};
  std::optional<std::chrono::seconds> controller_loss;  // none: never give up
  std::optional<std::chrono::seconds> fast_fail;        // none: off
  std::string io_policy;  // of several paths: numa, round-robin or queue-depth; empty: as the kernel has it
  bool header_digest = false;
  bool data_digest = false;
  std::string host_key_file, controller_key_file;  // DH-HMAC-CHAP; empty: not asked for
  std::string tls_psk_file;                        // empty: clear text
  bool operator==(const ConnectOptions&) const = default;
};

enum class SubsystemKind { Io, Discovery, Referral };

// One entry of a target's discovery log. Untrusted: lengths, characters and numbers were checked, nothing
// else.
struct OfferedSubsystem {
  std::string nqn;
  SubsystemKind kind = SubsystemKind::Io;
  std::string transport;       // "tcp", "rdma", "fc", …
  std::string address_family;  // "ipv4", "ipv6", …
  Portal portal;
};

struct DiscoveryLog {
  std::uint64_t generation = 0;
  std::vector<OfferedSubsystem> entries;
  std::vector<std::string> ignored;  // a sentence for each entry that could not be believed
};

// A controller as /sys/class/nvme shows it now.
struct Controller {
  std::string name;       // "nvme3"
  std::string subsystem;  // NQN
  std::string transport;  // "tcp", "pcie", …
  std::string state;      // the kernel's word: live, connecting, resetting, deleting, dead, …
  Portal portal;          // from `address`; empty for other transports than tcp
  std::string interface;  // host_iface, empty if none
  std::string host_nqn, host_id;
  bool is_discovery = false;
  std::string owner;  // the program that owns it (registry.hpp); empty: none
  bool is_live() const { return state == "live"; }
  bool is_going() const { return state.starts_with("deleting") || state == "dead"; }
};

// A namespace whose last path a disconnect would take keeps it while it is in use, unless its block device is
// one of these: its users lose unwritten data.
struct CutOff {
  bool is_all = false;
  std::vector<dev_t> devices;
  bool is_none() const { return !is_all && devices.empty(); }
  bool covers(dev_t device) const {
    return is_all || std::find(devices.begin(), devices.end(), device) != devices.end();
  }
};

// A namespace's block device: the multipath head where there is one.
struct Namespace {
  std::string device;  // "nvme3n1": valid until the next look, never an identity
  std::uint32_t nsid = 0;
  Bytes bytes = 0;
  std::string uuid, nguid, eui;  // empty if the target gives none
  dev_t device_number = 0;
  // The best identifier that the target gives; empty if none.
  const std::string& id() const { return !uuid.empty() ? uuid : !nguid.empty() ? nguid : eui; }
};

}  // namespace spark::nvmetcp
