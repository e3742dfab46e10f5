// The workers' verbs: the only calls of the daemon that access the kernel's fabric, disks, mounts and the
// catalog, and those that may take long because of their size.
#pragma once

#include "base/json.hpp"
#include "base/result.hpp"
#include "daemon/workers/verbs/protocol.hpp"

namespace spark::workers {

// Fabric (fabric_verbs.cpp); requests and results have the formats of wire.hpp.
VerbFunction discover_verb, watch_discovery_verb, read_discovery_verb, resolve_verb, connect_verb;
VerbFunction timers_verb, rescan_verb, disconnect_verb, smart_verb, reservation_verb;

// Mounts (mount_verbs.cpp)
VerbFunction superblock_verb, mount_verb, unmount_verb, users_verb, guard_verb, remove_guards_verb;
VerbFunction probe_verb, mounted_state_verb, flush_verb, publish_verb, make_writable_verb;
VerbFunction stop_writing_verb, record_verb;

// Configuration (config_verbs.cpp)
VerbFunction plan_verb;

// Cache (cache_verbs.cpp)
VerbFunction stage_verb, verify_verb, evict_verb, recover_verb;
// catalog_verb.cpp
VerbFunction catalog_verb, move_cache_verb, reset_cache_verb;
// fleet_verbs.cpp
VerbFunction serve_peers_verb, ask_peers_verb, adopt_folders_verb, verify_adopted_verb;
// The page cache (memory_verbs.cpp)
VerbFunction watch_memory_verb, drop_memory_verb;
// Live views (live_verbs.cpp)
VerbFunction serve_view_verb, show_copy_verb, drop_pages_verb, end_view_verb, find_views_verb;
// Outputs (output_verbs.cpp)
VerbFunction flush_source_verb, stage_out_verb, verify_output_verb, recorded_verb, forget_verb;
// Checkpoints (checkpoint_verbs.cpp)
VerbFunction scan_output_verb, list_published_verb, prune_output_verb, point_output_verb;
VerbFunction announce_shards_verb, hold_source_verb, release_held_verb, tidy_output_verb;
// Leases and their holders (lease_verbs.cpp)
VerbFunction lease_verb, jobs_here_verb, user_verb;

}  // namespace spark::workers
