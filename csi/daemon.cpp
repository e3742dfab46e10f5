#include "csi/daemon.hpp"

#include <vector>

#include "base/text.hpp"
#include "cli/client/api.hpp"

namespace spark::csi {
namespace {

constexpr char kSystem[] = "csi";

std::string leases_of(const std::string& volume) {
  return "/v1/leases/" + cli::percent_encoded("job:" + std::string(kSystem) + ":" + volume);
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
  if (get_array(entry, "namespaces") == nullptr && !publication.is_output()) return {};
  for (const std::string& allowed : get_strings(entry, "namespaces"))
    if (!allowed.empty() && allowed == publication.pod_namespace) return {};
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

Result<std::optional<Copy>> copy_in(const json::object& event) {
  const json::object* result = get_object(event, "result");
  const json::array* datasets = result == nullptr ? nullptr : get_array(*result, "datasets");
  const json::object* first =
      datasets == nullptr || datasets->empty() ? nullptr : datasets->front().if_object();
  auto path = first == nullptr ? std::nullopt : get_string(*first, "path");
  if (path) return Copy{std::move(*path), get_text(*first, "unchecked")};
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

Result<std::filesystem::path> Daemon::check_allowed(const Publication& publication) {
  const auto config = ask("GET", "/v1/config");
  if (!config) return config.take_error();
  const auto entry = find_allowed(*config, publication);
  if (!entry) return entry.take_error();
  return std::filesystem::path(get_text(*entry, "path"));
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

Result<std::optional<Copy>> Daemon::stage(const Publication& publication, Duration silence,
                                          const std::function<bool(const json::object&)>& on) {
  if (publication.generation == 0) {
    if (auto allowed = check_allowed(publication); !allowed) return allowed.take_error();
  }
  json::object volume{{"system", kSystem}, {"id", publication.volume}};
  if (!publication.pod.empty()) volume["user"] = publication.pod;
  json::object body{{"datasets", json::array{json::value(publication.dataset)}},
                    {"job", std::move(volume)},
                    {"wait_s", nullptr}};
  if (publication.generation != 0) body["generation"] = publication.generation;
  if (publication.now && publication.generation == 0) body["now"] = true;
  const auto job = ask("POST", "/v1/stagings", std::move(body));
  if (!job) return job.take_error();
  Result<std::optional<Copy>> staged =
      fail(Errc::Unavailable, "spark-staged was restarted during the staging");
  const auto on_line = [&](std::string_view line) {
    const auto event = parse_json_object(line);
    if (!event) return true;
    const json::object* error = get_object(*event, "error");
    if (error != nullptr) {
      staged = fail(error_from_json(*error));
    } else if (get_string(*event, "event") == "done") {
      staged = copy_in(*event);
    } else {
      if (on(*event)) return true;
      staged = std::nullopt;
    }
    return false;
  };
  const std::string events = "/v1/jobs/" + cli::percent_encoded(get_text(*job, "key")) + "/events";
  const auto answer = client_.stream({"GET", events, {}}, on_line, silence);
  if (!answer && answer.error().kind == Errc::TimedOut) return std::nullopt;
  return staged;
}

Result<> Daemon::release(const std::string& volume) {
  const auto answer = ask("DELETE", leases_of(volume));
  if (!answer && answer.error().kind != Errc::NotFound) return answer.take_error();
  return {};
}

Result<std::multimap<std::string, std::string>> Daemon::leased_volumes() {
  const auto listed = ask("GET", "/v1/datasets");
  if (!listed) return listed.take_error();
  std::multimap<std::string, std::string> volumes;
  for (const json::object& row : objects_in(*listed, "datasets")) {
    for (const json::object& lease : objects_in(row, "leases")) {
      const json::object* job = get_object(lease, "job");
      if (job != nullptr && get_string(*job, "system") == kSystem)
        volumes.emplace(get_text(*job, "id"), get_text(row, "name"));
    }
  }
  return volumes;
}

Result<std::int64_t> Daemon::generation_of(const std::string& dataset,
                                           const std::function<bool(const std::string&)>& wanted) {
  const auto listed = ask("GET", "/v1/datasets");
  if (!listed) return listed.take_error();
  for (const json::object& row : objects_in(*listed, "datasets")) {
    if (get_string(row, "name") != dataset) continue;
    for (const json::object& copy : objects_in(row, "copies")) {
      if (wanted(get_text(copy, "path"))) return get_int(copy, "generation").value_or(0);
    }
  }
  return fail(Errc::NotFound, "its copy is not in the cache any more");
}

}  // namespace spark::csi
