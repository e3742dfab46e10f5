// Requests and answers of workers as JSON, and back. Both ends are the same program: no version, no
// tolerance.
#pragma once

#include "base/json.hpp"
#include "daemon/config/model.hpp"
#include "daemon/mounts/guard.hpp"
#include "daemon/mounts/mounter.hpp"
#include "daemon/mounts/superblock.hpp"
#include "nvmetcp/gateway.hpp"
#include "nvmetcp/reservation_hold.hpp"
#include "nvmetcp/smart.hpp"
#include "staging/cache.hpp"
#include "staging/catalog.hpp"

namespace spark::workers {

json::object to_json(const nvmetcp::Portal& portal);
nvmetcp::Portal portal_from_json(const json::object& object);

// Of keys the files' names: the worker reads them.
json::object to_json(const nvmetcp::ConnectOptions& options);
nvmetcp::ConnectOptions connect_options_from_json(const json::object& object);

json::object to_json(const nvmetcp::DiscoveryLog& log);
nvmetcp::DiscoveryLog discovery_log_from_json(const json::object& object);

json::object to_json(const nvmetcp::Connection& connection);
nvmetcp::Connection connection_from_json(const json::object& object);

json::object to_json(const nvmetcp::Smart& smart);
nvmetcp::Smart smart_from_json(const json::object& object);
json::object to_json(const nvmetcp::Holding& holding);
nvmetcp::Holding holding_from_json(const json::object& object);

json::object to_json(const mounts::Superblock& superblock);
mounts::Superblock superblock_from_json(const json::object& object);

json::object to_json(const mounts::MountRequest& request);
mounts::MountRequest mount_request_from_json(const json::object& object);

json::object to_json(const mounts::Guard& guard);
mounts::Guard guard_from_json(const json::object& object);

json::object to_json(Change change);
Change change_from_json(const json::object& object);

// Parts of the file system become bytes at the worker, which may ask the file system for its size.
json::object to_json(const config::CacheSettings& settings, const std::string& state_dir);
config::CacheSettings cache_settings_from_json(const json::object& object);

json::object to_json(const staging::CopyProgress& progress);

// Times as seconds since 1970, 0 for none.
json::object to_json(const staging::Lease& lease);
staging::Lease lease_from_json(const json::object& object);

}  // namespace spark::workers
