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

// Each lease of a volume: its ID and the dataset.
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

Result<> check_namespace(const Publication& publication, const json::object& dataset) {
  const json::array* namespaces = get_array(dataset, "namespaces");
  if (namespaces == nullptr) return {};
  for (const json::value& one : *namespaces) {
    const json::string* name = one.if_string();
    const std::string_view allowed =
        name == nullptr ? std::string_view() : std::string_view(name->data(), name->size());
    if (!allowed.empty() && allowed == publication.pod_namespace) return {};
  }
  const std::string name = printable(publication.dataset);
  if (publication.pod_namespace.empty()) {
    return fail(Errc::Denied,
                "dataset " + name + " is for some namespaces only, and kubelet did not tell the pod's",
                "set podInfoOnMount: true in the CSIDriver object");
  }
  return fail(
      Errc::Denied,
      "dataset " + name + " may not be used by pods of namespace " + printable(publication.pod_namespace),
      "an administrator lists the namespaces that may: datasets." + name + ".namespaces on the node");
}

std::vector<std::string> names_in(const json::object& datasets) {
  std::vector<std::string> names;
  for (const auto& member : datasets) names.emplace_back(member.key());
  return names;
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
  const json::object* datasets = get_object(*config, "datasets");
  const json::object* dataset = datasets == nullptr ? nullptr : get_object(*datasets, publication.dataset);
  if (dataset != nullptr) return check_namespace(publication, *dataset);
  const std::string near = datasets == nullptr ? "" : nearest(publication.dataset, names_in(*datasets));
  return fail(Errc::NotFound,
              "no dataset '" + printable(publication.dataset) + "' in this node's configuration" +
                  (near.empty() ? "" : "; did you mean '" + near + "'?"),
              "an administrator adds it under 'datasets' on every node");
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
