#include "daemon/workers/wire.hpp"

namespace spark::workers {
namespace {

std::string text(const json::object& object, std::string_view key) {
  return get_string(object, key).value_or("");
}

template <class Number>
Number number(const json::object& object, std::string_view key) {
  return static_cast<Number>(get_int(object, key).value_or(0));
}

json::value seconds_or_null(const std::optional<std::chrono::seconds>& seconds) {
  return seconds ? json::value(seconds->count()) : json::value(nullptr);
}

std::optional<std::chrono::seconds> optional_seconds(const json::object& object, std::string_view key) {
  const auto value = get_int(object, key);
  if (!value) return std::nullopt;
  return std::chrono::seconds(*value);
}

json::array texts_to_json(const std::vector<std::string>& texts) {
  json::array array;
  for (const std::string& one : texts) array.emplace_back(one);
  return array;
}

std::vector<std::string> texts(const json::object& object, std::string_view key) {
  std::vector<std::string> all;
  if (const json::array* array = get_array(object, key)) {
    for (const json::value& one : *array) {
      if (one.is_string()) all.emplace_back(one.get_string());
    }
  }
  return all;
}

}  // namespace

json::object to_json(const nvmetcp::Portal& portal) {
  return {{"address", portal.address}, {"port", portal.port}};
}

nvmetcp::Portal portal_from_json(const json::object& object) {
  return {text(object, "address"), number<std::uint16_t>(object, "port")};
}

json::object to_json(const nvmetcp::ConnectOptions& options) {
  return {{"interface", options.interface},
          {"io_queues", options.io_queues},
          {"keep_alive_s", options.keep_alive.count()},
          {"reconnect_delay_s", options.reconnect_delay.count()},
          {"controller_loss_s", seconds_or_null(options.controller_loss)},
          {"fast_fail_s", seconds_or_null(options.fast_fail)},
          {"io_policy", options.io_policy},
          {"header_digest", options.header_digest},
          {"data_digest", options.data_digest},
          {"host_key_file", options.host_key_file},
          {"controller_key_file", options.controller_key_file},
          {"tls_psk_file", options.tls_psk_file}};
}

nvmetcp::ConnectOptions connect_options_from_json(const json::object& object) {
  nvmetcp::ConnectOptions options;
  options.interface = text(object, "interface");
  options.io_queues = number<unsigned>(object, "io_queues");
  options.keep_alive = std::chrono::seconds(number<std::int64_t>(object, "keep_alive_s"));
  options.reconnect_delay = std::chrono::seconds(number<std::int64_t>(object, "reconnect_delay_s"));
  options.controller_loss = optional_seconds(object, "controller_loss_s");
  options.fast_fail = optional_seconds(object, "fast_fail_s");
  options.io_policy = text(object, "io_policy");
  options.header_digest = get_bool(object, "header_digest").value_or(false);
  options.data_digest = get_bool(object, "data_digest").value_or(false);
  options.host_key_file = text(object, "host_key_file");
  options.controller_key_file = text(object, "controller_key_file");
  options.tls_psk_file = text(object, "tls_psk_file");
  return options;
}

json::object to_json(const nvmetcp::DiscoveryLog& log) {
  json::array entries;
  for (const nvmetcp::OfferedSubsystem& entry : log.entries) {
    entries.push_back(json::object{{"nqn", entry.nqn},
                                   {"kind", static_cast<int>(entry.kind)},
                                   {"transport", entry.transport},
                                   {"address_family", entry.address_family},
                                   {"portal", to_json(entry.portal)}});
  }
  return {{"generation", log.generation},
          {"entries", std::move(entries)},
          {"ignored", texts_to_json(log.ignored)}};
}

nvmetcp::DiscoveryLog discovery_log_from_json(const json::object& object) {
  nvmetcp::DiscoveryLog log;
  log.generation = number<std::uint64_t>(object, "generation");
  log.ignored = texts(object, "ignored");
  if (const json::array* entries = get_array(object, "entries")) {
    for (const json::value& value : *entries) {
      const json::object& entry = value.as_object();
      nvmetcp::OfferedSubsystem offered;
      offered.nqn = text(entry, "nqn");
      offered.kind = static_cast<nvmetcp::SubsystemKind>(number<int>(entry, "kind"));
      offered.transport = text(entry, "transport");
      offered.address_family = text(entry, "address_family");
      if (const json::object* portal = get_object(entry, "portal"))
        offered.portal = portal_from_json(*portal);
      log.entries.push_back(std::move(offered));
    }
  }
  return log;
}

json::object to_json(const nvmetcp::Connection& connection) {
  return {{"controller", connection.controller},
          {"done", connection.change == Change::Done},
          {"differences", texts_to_json(connection.differences)}};
}

nvmetcp::Connection connection_from_json(const json::object& object) {
  return {text(object, "controller"), change_from_json(object), texts(object, "differences")};
}

json::object to_json(const nvmetcp::Smart& smart) {
  json::object object{{"critical", texts_to_json(smart.critical)},
                      {"used_percent", smart.used_percent},
                      {"media_errors", smart.media_errors}};
  if (smart.temperature_c) object["temperature_c"] = *smart.temperature_c;
  if (smart.spare_percent) object["spare_percent"] = *smart.spare_percent;
  return object;
}

nvmetcp::Smart smart_from_json(const json::object& object) {
  nvmetcp::Smart smart;
  smart.critical = texts(object, "critical");
  smart.used_percent = number<unsigned>(object, "used_percent");
  smart.media_errors = number<std::uint64_t>(object, "media_errors");
  if (get_int(object, "temperature_c")) smart.temperature_c = number<int>(object, "temperature_c");
  if (get_int(object, "spare_percent")) smart.spare_percent = number<unsigned>(object, "spare_percent");
  return smart;
}

json::object to_json(const nvmetcp::Holding& holding) {
  return {{"hold", static_cast<int>(holding.hold)},
          {"holder", holding.holder},
          {"cloned_id", holding.cloned_id},
          {"former_key", holding.former_key},
          {"restarted", holding.restarted}};
}

nvmetcp::Holding holding_from_json(const json::object& object) {
  nvmetcp::Holding holding;
  holding.hold = static_cast<nvmetcp::Hold>(number<int>(object, "hold"));
  holding.holder = text(object, "holder");
  holding.cloned_id = get_bool(object, "cloned_id").value_or(false);
  holding.former_key = get_bool(object, "former_key").value_or(false);
  holding.restarted = get_bool(object, "restarted").value_or(false);
  return holding;
}

json::object to_json(const mounts::Superblock& superblock) {
  return {{"type", superblock.type},
          {"uuid", superblock.uuid},
          {"label", superblock.label},
          {"partition_table", superblock.partition_table},
          {"bytes", superblock.bytes},
          {"filesystem_bytes", superblock.filesystem_bytes},
          {"being_written", superblock.being_written},
          {"has_mmp", superblock.has_mmp},
          {"mmp_interval_s", superblock.mmp_interval_s},
          {"mmp_node", superblock.mmp_node},
          {"mmp_open", superblock.mmp_open},
          {"stamp", static_cast<std::int64_t>(superblock.stamp)},
          {"damage", superblock.damage},
          {"read_us", superblock.read_us}};
}

mounts::Superblock superblock_from_json(const json::object& object) {
  mounts::Superblock superblock;
  superblock.type = text(object, "type");
  superblock.uuid = text(object, "uuid");
  superblock.label = text(object, "label");
  superblock.partition_table = text(object, "partition_table");
  superblock.bytes = number<Bytes>(object, "bytes");
  superblock.filesystem_bytes = number<Bytes>(object, "filesystem_bytes");
  superblock.being_written = get_bool(object, "being_written").value_or(false);
  superblock.has_mmp = get_bool(object, "has_mmp").value_or(false);
  superblock.mmp_interval_s = number<unsigned>(object, "mmp_interval_s");
  superblock.mmp_node = text(object, "mmp_node");
  superblock.mmp_open = get_bool(object, "mmp_open").value_or(false);
  superblock.stamp = number<std::uint64_t>(object, "stamp");
  superblock.damage = text(object, "damage");
  superblock.read_us = get_double(object, "read_us").value_or(0);
  return superblock;
}

json::object to_json(const mounts::MountRequest& request) {
  json::object object{{"source", request.source},
                      {"target", request.target.native()},
                      {"type", request.type},
                      {"read_only", request.read_only},
                      {"uuid", request.uuid},
                      {"keeps_journal", request.keeps_journal},
                      {"claim_as", request.claim_as},
                      {"may_hide_files", request.may_hide_files},
                      {"options", texts_to_json(request.options)}};
  if (const auto& dead = request.replaces)
    object["replaces"] = json::object{{"device", dead->device}, {"detach", dead->detach}};
  return object;
}

mounts::MountRequest mount_request_from_json(const json::object& object) {
  mounts::MountRequest request;
  request.source = text(object, "source");
  request.target = text(object, "target");
  request.type = text(object, "type");
  request.read_only = get_bool(object, "read_only").value_or(true);
  request.keeps_journal = get_bool(object, "keeps_journal").value_or(false);
  request.uuid = get_string(object, "uuid").value_or("");
  request.claim_as = text(object, "claim_as");
  request.may_hide_files = get_bool(object, "may_hide_files").value_or(false);
  request.options = texts(object, "options");
  if (const json::object* dead = get_object(object, "replaces")) {
    request.replaces = mounts::DeadMount{static_cast<dev_t>(get_int(*dead, "device").value_or(0)),
                                         get_bool(*dead, "detach").value_or(false)};
  }
  return request;
}

json::object to_json(const mounts::Guard& guard) {
  return {{"is_ours", guard.is_ours}, {"gap", guard.gap}, {"files", texts_to_json(guard.files)}};
}

mounts::Guard guard_from_json(const json::object& object) {
  return {get_bool(object, "is_ours").value_or(false), text(object, "gap"), texts(object, "files")};
}

json::object to_json(Change change) {
  return {{"done", change == Change::Done}};
}

Change change_from_json(const json::object& object) {
  return get_bool(object, "done").value_or(false) ? Change::Done : Change::AlreadyThere;
}

json::object to_json(const config::CacheSettings& settings, const std::string& state_dir) {
  const auto amount = [](const config::Amount& one) {
    return json::object{{"bytes", one.bytes}, {"percent", one.percent}};
  };
  return {{"path", settings.path.native()},        {"state_dir", state_dir},
          {"capacity", amount(settings.capacity)}, {"keep_free", amount(settings.keep_free)},
          {"threads", settings.engine.threads},    {"depth", settings.engine.depth},
          {"chunk", settings.engine.chunk}};
}

config::CacheSettings cache_settings_from_json(const json::object& object) {
  const auto amount = [&](std::string_view key) {
    const json::object* one = get_object(object, key);
    config::Amount read;
    if (one != nullptr) {
      read.bytes = number<Bytes>(*one, "bytes");
      read.percent = get_double(*one, "percent").value_or(0);
    }
    return read;
  };
  config::CacheSettings settings;
  settings.path = text(object, "path");
  settings.capacity = amount("capacity");
  settings.keep_free = amount("keep_free");
  settings.engine = {number<unsigned>(object, "threads"), number<unsigned>(object, "depth"),
                     number<Bytes>(object, "chunk")};
  return settings;
}

json::object to_json(const staging::CopyProgress& progress) {
  static constexpr const char* kPhases[] = {"walking", "copying", "flushing", "verifying", "publishing"};
  json::object object{{"phase", kPhases[static_cast<int>(progress.phase)]},
                      {"bytes_done", progress.bytes_done},
                      {"bytes_total", progress.bytes_total},
                      {"files_done", progress.files_done},
                      {"files_total", progress.files_total},
                      {"bytes_per_second", progress.bytes_per_second},
                      {"seconds", progress.seconds},
                      {"eta_s", progress.eta_s ? json::value(*progress.eta_s) : json::value(nullptr)},
                      {"bottleneck", progress.bottleneck}};
  if (!progress.reason.empty()) object["reason"] = progress.reason;
  return object;
}

json::object to_json(const staging::Lease& lease) {
  const auto since_1970 = [](WallTime time) {
    return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
  };
  return {{"id", lease.id},
          {"dataset", lease.dataset},
          {"generation", lease.generation},
          {"holder", lease.holder},
          {"pid", lease.process.pid},
          {"pid_start_time", lease.process.start_time},
          {"cgroup", lease.cgroup.path.native()},
          {"cgroup_id", lease.cgroup.id},
          {"expires", lease.expires ? since_1970(*lease.expires) : 0}};
}

staging::Lease lease_from_json(const json::object& object) {
  staging::Lease lease;
  lease.id = text(object, "id");
  lease.dataset = text(object, "dataset");
  lease.generation = number<std::uint64_t>(object, "generation");
  lease.holder = text(object, "holder");
  lease.process = {number<pid_t>(object, "pid"), number<std::uint64_t>(object, "pid_start_time")};
  lease.cgroup = {text(object, "cgroup"), number<std::uint64_t>(object, "cgroup_id")};
  if (const auto expires = number<std::int64_t>(object, "expires"); expires > 0) {
    lease.expires = WallTime(std::chrono::seconds(expires));
  }
  return lease;
}

}  // namespace spark::workers
