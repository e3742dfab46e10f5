#include "daemon/workers/wire.hpp"

#include "daemon/workers/messages.hpp"

namespace spark::config {

SPARK_MESSAGE(Amount, (bytes, percent));

}  // namespace spark::config

namespace spark::workers {

json::object to_json(Change change) {
  return {{"done", change == Change::Done}};
}

Change change_from_json(const json::object& object) {
  return get_bool(object, "done").value_or(false) ? Change::Done : Change::AlreadyThere;
}

std::string_view to_string(mounts::Unmount how) {
  if (how == mounts::Unmount::Detach) return "detach";
  return how == mounts::Unmount::Force ? "force" : "plain";
}

Result<mounts::Unmount> unmount_from_string(std::string_view word) {
  for (const auto how : {mounts::Unmount::Plain, mounts::Unmount::Detach, mounts::Unmount::Force})
    if (to_string(how) == word) return how;
  return fail(Errc::Invalid, "an unmount is plain, detach or force");
}

json::object to_json(const config::CacheSettings& settings, const std::string& state_dir) {
  return {{"path", settings.path.native()},
          {"state_dir", state_dir},
          {"capacity", to_message(settings.capacity)},
          {"keep_free", to_message(settings.keep_free)},
          {"threads", settings.engine.threads},
          {"depth", settings.engine.depth},
          {"chunk", settings.engine.chunk},
          {"options", json::value_from(settings.options)}};
}

config::CacheSettings cache_settings_from_json(const json::object& object) {
  const auto amount = [&](std::string_view key) {
    const json::object* one = get_object(object, key);
    config::Amount read;
    if (one != nullptr) read_present(*one, read);
    return read;
  };
  config::CacheSettings settings;
  settings.path = get_text(object, "path");
  settings.capacity = amount("capacity");
  settings.keep_free = amount("keep_free");
  settings.options = get_strings(object, "options");
  return settings;
}

void read_engine(const json::object& object, staging::CopyOptions& options) {
  options.threads = static_cast<unsigned>(get_count(object, "threads"));
  options.depth = static_cast<unsigned>(get_count(object, "depth"));
  options.chunk = get_count(object, "chunk");
}

json::object to_json(const config::FleetSettings& fleet) {
  json::array peers;
  for (const auto& [name, addresses] : fleet.peers) {
    json::array endpoints;
    for (const nvmetcp::Portal& address : addresses) endpoints.push_back(to_message(address));
    peers.push_back(json::object{{"name", name}, {"endpoints", std::move(endpoints)}});
  }
  json::array listen;
  for (const nvmetcp::Portal& address : fleet.listen) listen.push_back(to_message(address));
  return {{"listen", std::move(listen)},
          {"key_file", fleet.key_file.native()},
          {"peers", std::move(peers)},
          {"dns", fleet.dns ? json::value(to_message(*fleet.dns)) : json::value(nullptr)},
          {"upload_bytes", fleet.upload.bytes},
          {"upload_percent", fleet.upload.percent}};
}

staging::OutsideLinks links_from_string(const std::string& word) {
  if (word == "copy") return staging::OutsideLinks::Copy;
  return word == "refuse" ? staging::OutsideLinks::Refuse : staging::OutsideLinks::Keep;
}

json::object to_json(const staging::CopyProgress& progress) {
  json::object object{{"phase", to_string(progress.phase)},
                      {"bytes_done", progress.bytes_done},
                      {"bytes_total", progress.bytes_total},
                      {"files_done", progress.files_done},
                      {"files_total", progress.files_total},
                      {"bytes_per_second", progress.bytes_per_second},
                      {"seconds", progress.seconds},
                      {"eta_s", or_null(progress.eta_s)},
                      {"bottleneck", progress.bottleneck},
                      {"bytes_from", json::object{{"volume", progress.bytes_from_volume},
                                                  {"peers", progress.bytes_from_peers}}}};
  if (!progress.reason.empty()) object["reason"] = progress.reason;
  return object;
}

}  // namespace spark::workers
