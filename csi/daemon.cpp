#include "csi/daemon.hpp"

#include <functional>
#include <vector>

#include "base/text.hpp"
#include "cli/client/api.hpp"

namespace spark::csi {
namespace {

constexpr char kSystem[] = "csi";

std::string leases_of(const std::string& volume) {
  return "/v1/leases/" + cli::percent_encoded("job:" + std::string(kSystem) + ":" + volume);
}

// Calls the function with each lease of a volume: its ID and the dataset.
void for_each_lease(const json::object& listed,
                    const std::function<void(const std::string& volume, const std::string& dataset)>& use) {
  const json::array* datasets = get_array(listed, "datasets");
  if (datasets == nullptr) return;
  for (const json::value& dataset : *datasets) {
    const json::object* row = dataset.if_object();
    const json::array* leases = row == nullptr ? nullptr : get_array(*row, "leases");
    if (leases == nullptr) continue;
    for (const json::value& lease : *leases) {
      const json::object* job = lease.is_object() ? get_object(lease.get_object(), "job") : nullptr;
      if (job != nullptr && get_string(*job, "system") == kSystem)
        use(get_string(*job, "id").value_or(""), get_string(*row, "name").value_or(""));
    }
  }
}

// The requested dataset or output, for messages.
struct Wanted {
  const char* kind;  // "dataset"
  std::string name;
  std::string section() const { return std::string(kind) + "s"; }
};

Wanted wanted_of(const Publication& publication) {
  if (publication.is_output()) return {"output", publication.output};
  return {"dataset", publication.dataset};
}

// A dataset without a list of namespaces is open to all of them; an output without a list is open to none.
Result<> check_namespace(const Publication& publication, const json::object& entry) {
  const json::array* namespaces = get_array(entry, "namespaces");
  if (namespaces == nullptr && !publication.is_output()) return {};
  for (const json::value& one : namespaces == nullptr ? json::array() : *namespaces) {
    const json::string* name = one.if_string();
    const std::string_view allowed =
        name == nullptr ? std::string_view() : std::string_view(name->data(), name->size());
    if (!allowed.empty() && allowed == publication.pod_namespace) return {};
  }
  const Wanted wanted = wanted_of(publication);
  const std::string what = wanted.kind + (" " + printable(wanted.name));
  if (publication.pod_namespace.empty()) {
    return fail(Errc::Denied, what + " is for some namespaces only, and kubelet did not tell the pod's",
                "set podInfoOnMount: true in the CSIDriver object");
  }
  return fail(Errc::Denied,
              what + " may not be used by pods of namespace " + printable(publication.pod_namespace),
              "an administrator lists the namespaces that may: " + wanted.section() + "." +
                  printable(wanted.name) + ".namespaces on the node");
}

std::vector<std::string> names_in(const json::object& entries) {
  std::vector<std::string> names;
  for (const auto& member : entries) names.emplace_back(member.key());
  return names;
}

// The configuration entry of the requested dataset or output, if the pod's namespace may use it.
Result<json::object> find_allowed(const json::object& config, const Publication& publication) {
  const Wanted wanted = wanted_of(publication);
  const json::object* entries = get_object(config, wanted.section());
  const json::object* entry = entries == nullptr ? nullptr : get_object(*entries, wanted.name);
  if (entry != nullptr) {
    if (auto may = check_namespace(publication, *entry); !may) return may.take_error();
    return *entry;
  }
  const std::string near = entries == nullptr ? "" : nearest(wanted.name, names_in(*entries));
  return fail(Errc::NotFound,
              "no " + std::string(wanted.kind) + " '" + printable(wanted.name) +
                  "' in this node's configuration" + (near.empty() ? "" : "; did you mean '" + near + "'?"),
              "an administrator adds it under '" + wanted.section() + "' on every node");
}

Result<std::string> path_in(const json::object& job) {
  const json::object* result = get_object(job, "result");
  const json::array* datasets = result == nullptr ? nullptr : get_array(*result, "datasets");
  const json::object* first =
      datasets == nullptr || datasets->empty() ? nullptr : datasets->front().if_object();
  auto path = first == nullptr ? std::nullopt : get_string(*first, "path");
  if (path) return std::move(*path);
  return fail(Errc::Failed, "spark-staged ended a staging without a path",
              "are spark-stage-csi and spark-staged of one version?");
}

}  // namespace

Result<json::object> Daemon::ask(const std::string& method, const std::string& target, json::object body) {
  const cli::Request request{method, target, body.empty() ? "" : json::serialize(body)};
  return cli::call(client_, request);
}

bool Daemon::is_healthy() {
  return ask("GET", "/healthz").has_value();
}

Result<> Daemon::check_allowed(const Publication& publication) {
  const auto config = ask("GET", "/v1/config");
  if (!config) return config.take_error();
  const auto entry = find_allowed(*config, publication);
  if (!entry) return entry.take_error();
  return {};
}

Result<std::filesystem::path> Daemon::output_folder(const Publication& publication) {
  const auto config = ask("GET", "/v1/config");
  if (!config) return config.take_error();
  const auto entry = find_allowed(*config, publication);
  if (!entry) return entry.take_error();
  return std::filesystem::path(get_string(*entry, "path").value_or(""));
}

Result<std::map<std::string, std::filesystem::path>> Daemon::outputs() {
  const auto config = ask("GET", "/v1/config");
  if (!config) return config.take_error();
  std::map<std::string, std::filesystem::path> folders;
  const json::object* entries = get_object(*config, "outputs");
  for (const auto& [name, entry] : entries == nullptr ? json::object() : *entries) {
    const json::object* output = entry.if_object();
    const auto path = output == nullptr ? std::nullopt : get_string(*output, "path");
    if (path) folders.emplace(name, *path);
  }
  return folders;
}

Result<> Daemon::job_ended(const std::string& output) {
  const auto answer =
      ask("POST", "/v1/outputs/" + cli::percent_encoded(output) + "/send", json::object{{"final", true}});
  if (!answer) return answer.take_error();
  return {};
}

Result<StagingJob> Daemon::stage(const Publication& publication) {
  json::object volume{{"system", kSystem}, {"id", publication.volume}};
  if (!publication.pod.empty()) volume["user"] = publication.pod;
  json::object body{{"datasets", json::array{json::value(publication.dataset)}}, {"job", std::move(volume)}};
  const auto answer = ask("POST", "/v1/stagings", std::move(body));
  if (!answer) return answer.take_error();
  return StagingJob{get_string(*answer, "id").value_or(""), get_string(*answer, "started").value_or("")};
}

Result<StagingLook> Daemon::look_at(const StagingJob& job) {
  StagingLook look;
  auto answer = ask("GET", "/v1/jobs/" + cli::percent_encoded(job.id));
  if (!answer && answer.error().kind != Errc::NotFound) return answer.take_error();
  look.is_gone = !answer || get_string(*answer, "started") != job.started;
  if (look.is_gone) return look;
  if (const json::object* progress = get_object(*answer, "progress")) look.progress = *progress;
  if (const json::object* error = get_object(*answer, "error")) {
    look.ended = Result<std::string>(fail(error_from_json(*error)));
  } else if (get_string(*answer, "state") == "done") {
    look.ended = path_in(*answer);
  }
  return look;
}

Result<> Daemon::release(const std::string& volume) {
  const auto answer = ask("DELETE", leases_of(volume));
  if (!answer && answer.error().kind != Errc::NotFound) return answer.take_error();
  return {};
}

Result<std::set<std::string>> Daemon::leased_volumes() {
  const auto listed = ask("GET", "/v1/datasets");
  if (!listed) return listed.take_error();
  std::set<std::string> volumes;
  for_each_lease(*listed, [&](const std::string& volume, const std::string&) { volumes.insert(volume); });
  return volumes;
}

Result<std::set<std::string>> Daemon::datasets_of(const std::string& volume) {
  const auto listed = ask("GET", "/v1/datasets");
  if (!listed) return listed.take_error();
  std::set<std::string> datasets;
  for_each_lease(*listed, [&](const std::string& holder, const std::string& dataset) {
    if (holder == volume) datasets.insert(dataset);
  });
  return datasets;
}

}  // namespace spark::csi
