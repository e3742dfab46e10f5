// Each request of docs/api.md and its answer.
#include <charconv>
#include <limits>

#include "base/file.hpp"
#include "base/text.hpp"
#include "base/version.hpp"
#include "daemon/service.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>

namespace spark {
namespace {

using api::Answer;
using api::Request;

bool is(const Request& request, std::string_view method, std::initializer_list<std::string_view> path) {
  return request.method == method &&
         std::equal(request.path.begin(), request.path.end(), path.begin(), path.end());
}

Answer not_found(const Request& request) {
  return api::error_answer({Errc::NotFound,
                            "no " + printable(request.method) + " /" + printable(join(request.path, "/")),
                            "docs/api.md lists every request"});
}

Answer denied(const Request& request) {
  return api::error_answer({Errc::Denied,
                            "uid " + std::to_string(request.caller.uid) + " may not change volumes",
                            "use sudo: root alone may"});
}

Answer ok(json::value body) {
  Answer answer;
  answer.body = std::move(body);
  return answer;
}

Answer job_answer(Result<std::shared_ptr<datasets::Job>> job) {
  if (!job) return api::error_answer(job.error());
  Answer answer;
  answer.status = 202;
  answer.body = (*job)->to_json();
  return answer;
}

// The newest progress first, then each change, then the end.
api::EventSource events_of(std::shared_ptr<datasets::Job> job) {
  struct Cursor {
    bool first = true, ended = false;
  };
  return [job, cursor = std::make_shared<Cursor>()]() -> asio::awaitable<std::optional<json::object>> {
    // Captures live in the caller's EventSource, which outlives every call.
    if (cursor->ended) co_return std::nullopt;
    const bool has_news = cursor->first && job->progress();
    cursor->first = false;
    if (job->is_running() && !has_news) co_await job->next_change();
    if (!job->is_running()) {
      cursor->ended = true;
      co_return job->final_event();
    }
    co_return job->progress().value_or(json::object{{"event", "progress"}, {"phase", "queued"}});
  };
}

std::string describe_holder(const api::Caller& caller, pid_t pid) {
  const pid_t holder = pid != 0 ? pid : caller.pid;
  const auto name = read_line_file("/proc/" + std::to_string(holder) + "/comm");
  return "pid " + std::to_string(holder) + (name ? " (" + *name + ")" : "") + ", uid " +
         std::to_string(caller.uid);
}

Result<std::vector<std::string>> dataset_names(const json::object& body) {
  std::vector<std::string> names;
  const json::array* listed = get_array(body, "datasets");
  if (listed == nullptr) return names;
  for (const json::value& name : *listed) {
    if (!name.is_string()) return fail(Errc::Invalid, "a dataset's name is a string");
    names.emplace_back(name.get_string());
  }
  return names;
}

// Whom a lease ends with: "hold" is true (the caller), a process's number, or "cgroup" (the caller's).
Result<> read_hold(datasets::StageRequest& wanted, const Request& request) {
  const json::value* hold = request.body.if_contains("hold");
  if (hold == nullptr || *hold == false) return {};
  if (*hold == true) {
    wanted.holder_pid = request.caller.pid;
  } else if (*hold == "cgroup") {
    auto group = staging::cgroup_of(SystemRoot{}, request.caller.pid);
    if (!group) return tl::unexpected<Error>(std::move(group.error()));
    wanted.cgroup = std::move(*group);
  } else {
    const auto pid = get_int(request.body, "hold").value_or(0);
    if (pid <= 1 || pid > std::numeric_limits<pid_t>::max()) {
      return fail(Errc::Invalid, "hold is not true, \"cgroup\" or a process that can end",
                  "there is no lease for ever");
    }
    wanted.holder_pid = static_cast<pid_t>(pid);
    if (!staging::process_start_time(wanted.holder_pid))
      return fail(Errc::NotFound, "no process " + std::to_string(pid) + " to hold a lease for");
  }
  return {};
}

Result<datasets::StageRequest> read_staging(const Request& request) {
  datasets::StageRequest wanted;
  auto names = dataset_names(request.body);
  if (!names) return tl::unexpected<Error>(std::move(names.error()));
  wanted.datasets = std::move(*names);
  if (const auto seconds = get_int(request.body, "lease_s")) {
    // Ten years: far enough for anybody, near enough for every clock.
    if (*seconds <= 0 || *seconds > 10LL * 366 * 86400) {
      return fail(Errc::Invalid, "lease_s is not a lease's length in seconds", "there is no lease for ever");
    }
    wanted.lease = std::chrono::seconds(*seconds);
  }
  if (const auto rate = get_int(request.body, "max_rate")) {
    if (*rate <= 0) return fail(Errc::Invalid, "max_rate is not a rate in bytes per second");
    wanted.max_rate = static_cast<Bytes>(*rate);
  }
  if (auto held = read_hold(wanted, request); !held) return tl::unexpected<Error>(std::move(held.error()));
  return wanted;
}

}  // namespace

asio::awaitable<Answer> Service::answer(Request request) {
  if (is(request, "GET", {"healthz"})) co_return ok(json::object{{"status", "ok"}});
  if (is(request, "GET", {"readyz"})) {
    Answer answer = ok(readiness_json());
    if (!get_bool(answer.body.as_object(), "ready").value_or(false)) answer.status = 503;
    co_return answer;
  }
  if (is(request, "GET", {"v1", "status"})) co_return ok(status_json());
  if (is(request, "GET", {"v1", "config"})) co_return ok(config::to_json(config_));
  if (is(request, "POST", {"v1", "reload"})) {
    if (!request.caller.may_change) co_return denied(request);
    auto changed = co_await reload();
    co_return changed ? ok(std::move(*changed)) : api::error_answer(changed.error());
  }
  if (is(request, "POST", {"v1", "plan"})) {
    auto planned = co_await plan(std::move(request.body));
    co_return planned ? ok(std::move(*planned)) : api::error_answer(planned.error());
  }
  if (is(request, "POST", {"v1", "stagings"})) co_return answer_staging(request);
  if (is(request, "POST", {"v1", "scrubs"})) {
    auto names = dataset_names(request.body);
    co_return names ? job_answer(stager_.scrub(std::move(*names))) : api::error_answer(names.error());
  }
  if (request.path.size() >= 2 && request.path[0] == "v1") {
    if (request.path[1] == "volumes") co_return co_await answer_volume(std::move(request));
    if (request.path[1] == "datasets") co_return co_await answer_dataset(std::move(request));
    if (request.path[1] == "jobs") co_return answer_job(request);
    if (request.path[1] == "leases" && request.path.size() == 3 && request.method == "DELETE") {
      const auto released = stager_.leases().release(request.path[2]);
      co_return released ? ok(json::object{{"released", request.path[2]}})
                         : api::error_answer(released.error());
    }
  }
  co_return not_found(request);
}

asio::awaitable<Answer> Service::answer_volume(Request request) {
  const bool known_verb = request.path.size() == 4 &&
                          (request.path[3] == "up" || request.path[3] == "down") && request.method == "POST";
  if (!known_verb) co_return not_found(request);
  if (!request.caller.may_change) co_return denied(request);
  co_return change_volume(request.path[2], request.path[3]);
}

Answer Service::change_volume(const std::string& name, const std::string& verb) {
  const auto volume = volumes_.find(name);
  if (!volume) {
    std::vector<std::string> names;
    for (const auto& one : volumes_.all()) names.push_back(one->settings().name);
    const std::string near = nearest(name, names);
    return api::error_answer(
        {Errc::NotFound, "no volume " + printable(name) + " in the configuration",
         near.empty() ? "`spark-stage status` lists them" : "did you mean " + near + "?"});
  }
  auto job = jobs_.create(verb, {name});
  const auto finish = [](datasets::Job& ended, const volumes::Volume& changed, Result<> result) {
    if (!result) {
      ended.finish(tl::unexpected<Error>(result.error()));
    } else {
      json::object done{{"volume", changed.settings().name}, {"state", to_string(changed.status().state)}};
      ended.finish(std::move(done));
    }
  };
  if (verb == "up") {
    volume->ask_up();
    finish(*job, *volume, {});
  } else {
    auto go_down = [](std::shared_ptr<datasets::Job> its_job, std::shared_ptr<volumes::Volume> its_volume,
                      decltype(finish) its_finish) -> asio::awaitable<void> {
      auto result = co_await its_volume->ask_down();
      its_finish(*its_job, *its_volume, std::move(result));
    };
    asio::co_spawn(context_, go_down(job, volume, finish), asio::detached);
  }
  return job_answer(job);
}

asio::awaitable<Answer> Service::answer_dataset(Request request) {
  if (is(request, "GET", {"v1", "datasets"})) {
    auto list = stager_.list();
    co_return list ? ok(std::move(*list)) : api::error_answer(list.error());
  }
  if (request.method == "POST" && request.path.size() == 4) {
    if (request.path[3] == "verify") {
      const bool sha256 = get_bool(request.body, "sha256").value_or(false);
      co_return job_answer(stager_.verify(request.path[2], sha256));
    }
    if (request.path[3] == "evict") co_return job_answer(stager_.evict(request.path[2]));
  }
  co_return not_found(request);
}

Answer Service::answer_staging(const Request& request) {
  auto wanted = read_staging(request);
  if (!wanted) return api::error_answer(wanted.error());
  wanted->holder = describe_holder(request.caller, wanted->holder_pid);
  return job_answer(stager_.stage(std::move(*wanted)));
}

Answer Service::answer_job(const Request& request) {
  if (is(request, "GET", {"v1", "jobs"})) {
    json::array all;
    for (const auto& job : jobs_.all()) all.push_back(job->to_json());
    return ok(json::object{{"jobs", std::move(all)}});
  }
  std::uint64_t id = 0;
  if (request.path.size() >= 3) {
    const std::string& text = request.path[2];
    std::from_chars(text.data(), text.data() + text.size(), id);
  }
  const auto job = jobs_.find(id);
  if (!job) {
    return api::error_answer(
        {Errc::NotFound, "no such job", "the daemon may have been restarted since: ask for the work again"});
  }
  if (request.method == "GET" && request.path.size() == 3) return ok(job->to_json());
  if (request.method == "GET" && request.path.size() == 4 && request.path[3] == "events") {
    Answer answer;
    answer.events = events_of(job);
    return answer;
  }
  if (request.method == "DELETE" && request.path.size() == 3) {
    const auto cancelled = job->cancel();
    return cancelled ? ok(job->to_json()) : api::error_answer(cancelled.error());
  }
  return not_found(request);
}

json::object Service::status_json() const {
  json::array volumes;
  for (const auto& volume : volumes_.all())
    volumes.push_back(volumes::to_json(volume->settings(), volume->status()));
  return {{"version", kVersion},
          {"uptime_s", std::chrono::duration_cast<std::chrono::seconds>(clock_.steady() - started_).count()},
          {"volumes", std::move(volumes)},
          {"stages", stager_.stages()},
          {"cache", stager_.cache()},
          {"stuck_workers", runner_.abandoned().size()}};
}

json::object Service::readiness_json() const {
  json::array waiting_for;
  for (const auto& volume : volumes_.all()) {
    const auto state = volume->status().state;
    if (state != volumes::State::Ready && state != volumes::State::Down)
      waiting_for.emplace_back(volume->settings().name);
  }
  const bool ready = waiting_for.empty();
  return {{"ready", ready}, {"waiting_for", std::move(waiting_for)}};
}

}  // namespace spark
