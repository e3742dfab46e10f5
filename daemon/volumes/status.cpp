#include "daemon/volumes/status.hpp"

#include "base/text.hpp"
#include "daemon/volumes/checked_mount.hpp"

namespace spark::volumes {
namespace {

using Seconds = std::chrono::duration<double>;

json::value time_or_null(const std::optional<WallTime>& time) {
  return time ? json::value(rfc3339(*time)) : json::value(nullptr);
}

json::array outages_of(const History& history) {
  json::array outages;
  for (const Outage& outage : history.outages()) {
    outages.push_back(json::object{
        {"began", rfc3339(outage.began)},
        {"ended", time_or_null(outage.ended)},
        {"seconds",
         outage.ended ? json::value(Seconds(*outage.ended - outage.began).count()) : json::value(nullptr)},
        {"reason", or_null(printable(outage.reason))},
        {"healed_by", outage.healer ? json::value(to_string(*outage.healer)) : json::value(nullptr)}});
  }
  return outages;
}

json::value fence_of(const config::Volume& volume, const Status& status) {
  if (!volume.nvme || volume.access != config::Access::Exclusive) return nullptr;
  return json::object{{"reservation", status.fence.reservation},
                      {"mmp", status.mounted().has_mmp},
                      {"held_by", or_null(printable(status.fence.held_by))}};
}

json::value published_of(const std::optional<mounts::Published>& published) {
  if (!published) return nullptr;
  return json::object{{"generation", published->generation},
                      {"host", or_null(printable(published->host))},
                      {"at", or_null(printable(published->at))}};
}

json::value taken_down_of(const std::optional<Intent>& taken_down) {
  if (!taken_down) return nullptr;
  return json::object{{"since", rfc3339(taken_down->since)}, {"by", or_null(printable(taken_down->by))}};
}

json::value drives_of(const std::optional<DriveStatus>& drives) {
  if (!drives) return nullptr;
  const nvmetcp::Smart& smart = drives->smart;
  json::array critical;
  for (const std::string& words : smart.critical) critical.emplace_back(words);
  return json::object{{"critical", std::move(critical)},
                      {"temperature_c", or_null(smart.temperature_c)},
                      {"spare_percent", or_null(smart.spare_percent)},
                      {"used_percent", smart.used_percent},
                      {"media_errors", smart.media_errors},
                      {"asked_at", rfc3339(drives->asked_at)}};
}

}  // namespace

const char* to_string(State state) {
  static constexpr const char* kWords[] = {"waiting", "connecting", "mounting", "ready",   "stalled",
                                           "lost",    "recovering", "refused",  "leaving", "down"};
  return kWords[static_cast<std::size_t>(state)];
}

const MountedFacts& Status::mounted() const {
  static const MountedFacts kNone;
  return checked ? *checked : kNone;
}

void Status::warn(Warning kind, std::string sentence) {
  if (sentence.empty()) {
    warnings.erase(kind);
  } else {
    warnings[kind] = std::move(sentence);
  }
}

void Status::forget_connection() {
  insecure.clear();
  drives.reset();
  warn(Warning::Connection, "");
}

std::vector<std::string> all_warnings(const Status& status) {
  std::vector<std::string> warnings;
  for (const auto& [kind, sentence] : status.warnings) warnings.push_back(sentence);
  for (const std::string& sentence :
       {status.pending, status.insecure, status.mounted().damage, status.bare}) {
    if (!sentence.empty()) warnings.push_back(sentence);
  }
  if (status.drives && !status.drives->smart.critical.empty()) {
    warnings.push_back("the target's drives warn: " + join(status.drives->smart.critical, ", ") +
                       " - look at them on the target");
  }
  return warnings;
}

std::string bare_mount_point(const config::Volume& volume, const mounts::Guard& guard) {
  if (!guard.gap.empty()) return guard.gap;
  if (!guard.is_ours || guard.files.empty()) return "";
  constexpr std::size_t kNamed = 3;
  std::vector<std::string> names;
  for (const std::string& file : guard.files) names.push_back("'" + printable(file) + "'");
  const std::string more = names.size() > kNamed ? " and more" : "";
  names.resize(std::min(names.size(), kNamed));
  const std::string mount = volume.mount.native();
  return "the folder " + mount +
         " itself holds files, on the disk below the volume, which hides them: " + join(names, ", ") + more +
         " - `spark-stage volumes down " + volume.name + "` and `chattr -i " + mount +
         "`, then move them away";
}

json::object to_json(const config::Volume& volume, const Status& status) {
  json::array paths;
  for (const PathStatus& path : status.paths) {
    paths.push_back(json::object{{"controller", or_null(printable(path.controller))},
                                 {"address", printable(path.address)},
                                 {"state", path.state},
                                 {"reason", or_null(printable(path.reason))},
                                 {"owner", or_null(printable(path.owner))}});
  }
  json::array warnings;
  for (const std::string& warning : all_warnings(status)) warnings.emplace_back(printable(warning));
  return {{"name", volume.name},
          {"kind", volume.nfs ? "nfs" : "nvme-tcp"},
          {"state", to_string(status.state)},
          {"reason", or_null(printable(status.reason))},
          {"since", rfc3339(status.since)},
          {"down", taken_down_of(status.taken_down)},
          {"next_attempt", time_or_null(status.next_attempt)},
          {"mount", printable(volume.mount.native())},
          {"access", volume.access == config::Access::Exclusive ? "exclusive" : "read-only"},
          {"device", or_null(printable(status.device))},
          {"filesystem", json::object{{"type", or_null(printable(status.filesystem_type))},
                                      {"uuid", or_null(printable(status.filesystem_uuid))}}},
          {"subsystem", volume.nvme ? or_null(printable(volume.nvme->subsystem)) : json::value(nullptr)},
          {"namespace", volume.nvme ? json::value(volume.nvme->nsid) : json::value(nullptr)},
          {"fence", fence_of(volume, status)},
          {"foreign_writes", status.mounted().foreign_writes},
          {"published", published_of(status.mounted().published)},
          {"paths", std::move(paths)},
          {"warnings", std::move(warnings)},
          {"reconnects", status.history.reconnects()},
          {"recoveries", status.history.recoveries()},
          {"last_outage_s", or_null(status.history.last_outage_s())},
          {"drives", drives_of(status.drives)},
          {"outages", outages_of(status.history)},
          {"probe", json::object{{"last_us", or_null(status.probes.last())},
                                 {"p50_us", or_null(status.probes.percentile(0.5))},
                                 {"p99_us", or_null(status.probes.percentile(0.99))}}}};
}

}  // namespace spark::volumes
