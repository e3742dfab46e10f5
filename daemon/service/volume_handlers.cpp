// Requests to one volume. Each may take long, so each is a job.
#include <functional>
#include <set>

#include "base/text.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/service/answers.hpp"
#include "daemon/service/handlers.hpp"

namespace spark {
namespace {

namespace asio = boost::asio;

using api::Answer;
using api::Request;
using VolumePtr = std::shared_ptr<volumes::Volume>;
using VolumeWork = std::function<asio::awaitable<void>(JobPtr job, VolumePtr volume)>;

json::object outcome_of(const volumes::Volume& volume) {
  const volumes::Status& status = volume.status();
  json::object outcome{{"volume", volume.settings().name}, {"state", to_string(status.state)}};
  for (const auto kind : {volumes::Warning::LeftConnected, volumes::Warning::Unrecorded}) {
    const auto found = status.warnings.find(kind);
    if (found != status.warnings.end()) outcome["warning"] = printable(found->second);
  }
  return outcome;
}

void finish(const JobPtr& job, const volumes::Volume& volume, const Result<>& result) {
  if (!result) {
    job->finish(fail(result.error()));
  } else {
    job->finish(outcome_of(volume));
  }
}

asio::awaitable<void> bring_up(JobPtr job, VolumePtr volume) {
  const auto writable = co_await volume->publication().make_writable();
  const auto up = co_await volume->requests().keep_up();
  finish(job, *volume, up ? writable : up);
}

asio::awaitable<void> take_down(JobPtr job, VolumePtr volume, std::string by, volumes::OnDown on_down) {
  const auto down = co_await volume->requests().keep_down(std::move(by), on_down);
  finish(job, *volume, down);
}

asio::awaitable<void> take_over(JobPtr job, VolumePtr volume, volumes::Requests::Take what) {
  const auto taken = co_await volume->requests().take(what);
  const std::string& name = volume->settings().name;
  if (!taken) {
    log::warning("volume " + name + " was not taken over: " + taken.error().message());
    job->finish(fail(taken.error()));
    co_return;
  }
  log::warning("volume " + name + ": taken over from " + (taken->empty() ? "nobody" : printable(*taken)));
  json::object done = outcome_of(*volume);
  done["taken_from"] = taken->empty() ? json::value(nullptr) : json::value(printable(*taken));
  job->finish(std::move(done));
}

asio::awaitable<void> publish(JobPtr job, VolumePtr volume, mounts::AfterPublish then) {
  const auto published = co_await volume->publication().publish(then);
  if (!published) {
    job->finish(fail(published.error()));
    co_return;
  }
  log::info("volume " + volume->settings().name + ": published as generation " +
            std::to_string(published->generation));
  json::object done = outcome_of(*volume);
  done["published"] = mounts::to_json(*published);
  job->finish(std::move(done));
}

Answer no_volume(const DaemonParts& daemon, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& one : daemon.volumes.all()) names.push_back(one->settings().name);
  const std::string near = nearest(name, names);
  return api::error_answer({Errc::NotFound, "no volume " + printable(name) + " in the configuration",
                            near.empty() ? "`spark-stage status` lists them" : "did you mean " + near + "?"});
}

Answer ask_volume(const DaemonParts& daemon, const Request& request, const VolumeWork& work) {
  const std::string& name = request.path[2];
  const auto volume = daemon.volumes.find(name);
  if (!volume) return no_volume(daemon, name);
  const auto job = daemon.jobs.create({request.path[3], {name}, asker_of(request.caller)});
  launch(daemon.executor, request.path[3] + " of volume " + name, work(job, volume));
  return accepted_answer(job);
}

}  // namespace

Answer get_volumes(const DaemonParts& daemon, const Request& request) {
  json::array volumes;
  std::set<std::string> seen;
  for (const std::string& name : split(request.path[2], ',')) {
    if (!seen.insert(name).second) continue;  // a header has room for thousands
    const auto volume = daemon.volumes.find(name);
    if (!volume) return no_volume(daemon, name);
    volumes.push_back(volumes::to_json(volume->settings(), volume->status()));
  }
  return ok_answer(json::object{{"volumes", std::move(volumes)}});
}

Answer post_up(const DaemonParts& daemon, const Request& request) {
  return ask_volume(daemon, request, bring_up);
}

Answer post_down(const DaemonParts& daemon, const Request& request) {
  constexpr std::size_t kLongestName = 64;
  std::string by = get_shown(request.body, "by").substr(0, kLongestName);
  if (by.empty()) by = "uid " + std::to_string(request.caller.uid);
  const bool is_forced = get_bool(request.body, "force").value_or(false);
  const auto on_down = is_forced ? volumes::OnDown::Force : volumes::OnDown::Disconnect;
  return ask_volume(daemon, request, [by, on_down](JobPtr job, VolumePtr volume) {
    return take_down(job, volume, by, on_down);
  });
}

Answer post_take(const DaemonParts& daemon, const Request& request) {
  log::warning("volume " + printable(request.path[2]) + ": uid " + std::to_string(request.caller.uid) +
               " asks to take it over from its holder");
  using volumes::Requests;
  const auto what =
      get_bool(request.body, "if_here").value_or(false) ? Requests::Take::IfHere : Requests::Take::Over;
  return ask_volume(daemon, request,
                    [what](JobPtr job, VolumePtr volume) { return take_over(job, volume, what); });
}

Answer post_publish(const DaemonParts& daemon, const Request& request) {
  const auto then = get_bool(request.body, "then_write").value_or(false) ? mounts::AfterPublish::Writable
                                                                         : mounts::AfterPublish::ReadOnly;
  return ask_volume(daemon, request,
                    [then](JobPtr job, VolumePtr volume) { return publish(job, volume, then); });
}

}  // namespace spark
