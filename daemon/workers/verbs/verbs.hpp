// The workers' verbs: the only calls of the daemon that access the kernel's fabric, disks, mounts and the
// catalog, and those that may take long because of their size.
#pragma once

#include "base/json.hpp"
#include "base/result.hpp"
#include "daemon/workers/verbs/protocol.hpp"

namespace spark::workers {

// Fabric (fabric_verbs.cpp); requests and results have the formats of wire.hpp.
Result<json::object> discover_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> watch_discovery_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> read_discovery_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> resolve_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> connect_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> timers_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> rescan_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> disconnect_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> smart_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> reservation_verb(const json::object& request, const ProgressLine& progress);

// Mounts (mount_verbs.cpp)
Result<json::object> superblock_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> mount_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> unmount_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> users_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> guard_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> remove_guards_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> probe_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> mounted_state_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> flush_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> publish_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> make_writable_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> stop_writing_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> record_verb(const json::object& request, const ProgressLine& progress);

// Configuration (config_verbs.cpp)
Result<json::object> plan_verb(const json::object& request, const ProgressLine& progress);

// Cache (cache_verbs.cpp)
Result<json::object> stage_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> verify_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> evict_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> recover_verb(const json::object& request, const ProgressLine& progress);
// catalog_verb.cpp
Result<json::object> catalog_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> move_cache_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> reset_cache_verb(const json::object& request, const ProgressLine& progress);
// fleet_verbs.cpp
Result<json::object> serve_peers_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> ask_peers_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> adopt_folders_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> verify_adopted_verb(const json::object& request, const ProgressLine& progress);
// The page cache (memory_verbs.cpp)
Result<json::object> watch_memory_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> drop_memory_verb(const json::object& request, const ProgressLine& progress);
// Live views (live_verbs.cpp)
Result<json::object> serve_view_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> show_copy_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> drop_pages_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> end_view_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> find_views_verb(const json::object& request, const ProgressLine& progress);
// Outputs (output_verbs.cpp)
Result<json::object> flush_source_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> stage_out_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> verify_output_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> recorded_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> forget_verb(const json::object& request, const ProgressLine& progress);
// Checkpoints (checkpoint_verbs.cpp)
Result<json::object> scan_output_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> list_published_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> prune_output_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> point_output_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> announce_shards_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> hold_source_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> release_held_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> tidy_output_verb(const json::object& request, const ProgressLine& progress);
// Leases and their holders (lease_verbs.cpp)
Result<json::object> lease_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> jobs_here_verb(const json::object& request, const ProgressLine& progress);
Result<json::object> user_verb(const json::object& request, const ProgressLine& progress);

}  // namespace spark::workers
