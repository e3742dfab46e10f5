// Messages between the daemon and its workers, in addition to messages.hpp: with omitted fields, or in other
// units.
#pragma once

#include "base/json.hpp"
#include "base/threads.hpp"
#include "daemon/config/model.hpp"
#include "daemon/mounts/mounter.hpp"
#include "staging/cache/cache.hpp"
#include "staging/cache/catalog/catalog.hpp"

namespace spark::workers {

json::object to_json(Change change);
Change change_from_json(const json::object& object);

std::string_view to_string(mounts::Unmount how);
Result<mounts::Unmount> unmount_from_string(std::string_view word);

// The worker converts percentages of the file system to bytes, because it may read the file system's size.
json::object to_json(const config::CacheSettings& settings, const std::string& state_dir);
config::CacheSettings cache_settings_from_json(const json::object& object);

// "threads", "depth", "chunk" of CacheSettings, or of a request with the same fields.
void read_engine(const json::object& object, staging::CopyOptions& options);

json::object to_json(const config::FleetSettings& fleet);

staging::OutsideLinks links_from_string(
    const std::string& word);  // any other word than a setting means "keep"

json::object to_json(const staging::CopyProgress& progress);

}  // namespace spark::workers
