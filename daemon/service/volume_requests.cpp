// What is asked of one volume: each is a job, as it may take long.
#include "base/text.hpp"
#include "daemon/launch.hpp"
#include "daemon/log.hpp"
#include "daemon/service/service.hpp"

namespace spark {
namespace {

using api::Answer;
using api::Request;
using JobPtr = std::shared_ptr<Job>;
using VolumePtr = std::shared_ptr<volumes::Volume>;

json::object outcome_of(const volumes::Volume& volume) {
  return {{"volume", volume.settings().name}, {"state", to_string(volume.status().state)}};
}

void finish(Job& job, const volumes::Volume& volume, const Result<>& result) {
  if (!result) {
    job.finish(fail(result.error()));
  } else {
    job.finish(outcome_of(volume));
  }
}

asio::awaitable<void> bring_up(JobPtr job, VolumePtr volume) {
  const auto writable = co_await volume->publication().make_writable();
  const auto up = co_await volume->requests().keep_up();
  finish(*job, *volume, up ? writable : up);
}

asio::awaitable<void> take_down(JobPtr job, VolumePtr volume, std::string by) {
  const auto down = co_await volume->requests().keep_down(std::move(by));
  finish(*job, *volume, down);
}

asio::awaitable<void> take_over(JobPtr job, VolumePtr volume) {
  const auto taken = co_await volume->requests().take();
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

}  // namespace

Answer Service::ask_volume(const Request& request, const VolumeWork& work) {
  const std::string& name = request.path[2];
  const auto volume = volumes_.find(name);
  if (!volume) {
    std::vector<std::string> names;
    for (const auto& one : volumes_.all()) names.push_back(one->settings().name);
    const std::string near = nearest(name, names);
    return api::error_answer(
        {Errc::NotFound, "no volume " + printable(name) + " in the configuration",
         near.empty() ? "`spark-stage status` lists them" : "did you mean " + near + "?"});
  }
  const auto job = jobs_.create(request.path[3], {name});
  launch(context_.get_executor(), request.path[3] + " of volume " + name, work(job, volume));
  Answer answer;
  answer.status = 202;
  answer.body = job->to_json();
  return answer;
}

Answer Service::post_up(const Request& request) {
  return ask_volume(request, bring_up);
}

Answer Service::post_down(const Request& request) {
  constexpr std::size_t kLongestName = 64;
  std::string by = printable(get_string(request.body, "by").value_or("")).substr(0, kLongestName);
  if (by.empty()) by = "uid " + std::to_string(request.caller.uid);
  return ask_volume(request, [by](JobPtr job, VolumePtr volume) { return take_down(job, volume, by); });
}

Answer Service::post_take(const Request& request) {
  log::warning("volume " + printable(request.path[2]) + ": uid " + std::to_string(request.caller.uid) +
               " asks to take it over from whoever holds it");
  return ask_volume(request, take_over);
}

Answer Service::post_publish(const Request& request) {
  const auto then = get_bool(request.body, "then_write").value_or(false) ? mounts::AfterPublish::Writable
                                                                         : mounts::AfterPublish::ReadOnly;
  return ask_volume(request, [then](JobPtr job, VolumePtr volume) { return publish(job, volume, then); });
}

}  // namespace spark
