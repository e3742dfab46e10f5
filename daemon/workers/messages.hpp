// Structs exchanged between the daemon and its workers.
#pragma once

#include "base/described.hpp"
#include "base/kernel/mount_table.hpp"
#include "daemon/mounts/filesystems/mounted_state.hpp"
#include "daemon/mounts/filesystems/superblock.hpp"
#include "daemon/mounts/guard.hpp"
#include "daemon/mounts/mounter.hpp"
#include "daemon/mounts/publish.hpp"
#include "nvmetcp/connect/gateway.hpp"
#include "nvmetcp/device/smart.hpp"
#include "nvmetcp/reservations/reservation_hold.hpp"

namespace spark::nvmetcp {

SPARK_MESSAGE(Portal, (address, port));
// Contains the key files' names: the worker reads the keys.
SPARK_MESSAGE(ConnectOptions,
              (interface, io_queues, keep_alive, reconnect_delay, controller_loss, fast_fail, io_policy,
               header_digest, data_digest, host_key_file, controller_key_file, tls_psk_file));
SPARK_MESSAGE(OfferedSubsystem, (nqn, kind, transport, address_family, portal));
SPARK_MESSAGE(DiscoveryLog, (generation, entries, ignored));
SPARK_MESSAGE(Connection, (controller, change, differences));
SPARK_MESSAGE(CutOff, (is_all, devices));
SPARK_MESSAGE(Smart, (critical, temperature_c, spare_percent, used_percent, media_errors));
SPARK_MESSAGE(ReservationState, (hold, holder, cloned_id, former_key, restarted));

}  // namespace spark::nvmetcp

namespace spark::mounts {

SPARK_MESSAGE(Superblock,
              (type, uuid, label, partition_table, bytes, filesystem_bytes, being_written, has_mmp,
               mmp_interval_s, mmp_node, mmp_open, mmp_claimed, is_claimed, damage, stamp, mounts, read_us));
SPARK_MESSAGE(DeadMount, (device, detach, id));
SPARK_MESSAGE(MountRequest, (source, target, type, read_only, options, keeps_journal, claim_as, uuid,
                             replaces, claim_s, may_hide_files));
SPARK_MESSAGE(Guard, (is_ours, gap, files));
SPARK_MESSAGE(MountNumbers, (id, device));
SPARK_MESSAGE(Published, (generation, host, at));
SPARK_MESSAGE(Closed, (published, stamp, not_writable));
SPARK_MESSAGE(MountedState, (is_shut_down, uuid, damage, published, is_written_since));

}  // namespace spark::mounts

namespace spark::workers {

// A worker's result that consists of one struct.
template <Described T>
Result<T> message_of(Result<json::object> answer) {
  if (!answer) return answer.take_error();
  return from_message<T>(*answer);
}

// A member of a request that is a struct.
template <Described T>
Result<T> member_of(const json::object& request, std::string_view key) {
  const json::object* member = get_object(request, key);
  return from_message<T>(member == nullptr ? json::object{} : *member);
}

}  // namespace spark::workers
