#include "tests/histories/volumes/daemon.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>

#include "daemon/launch.hpp"

namespace spark::histories {

using VolumePtr = std::shared_ptr<volumes::Volume>;

const char* to_string(Ask ask) {
  static constexpr const char* kWords[] = {"volumes up",      "volumes down",        "volumes take",
                                           "volumes publish", "publish, then write", "reload"};
  return kWords[static_cast<std::size_t>(ask)];
}

asio::awaitable<Result<json::object>> GuardRemover::run(workers::Call call,
                                                        workers::Cancellation /*cancellation*/) {
  if (call.verb != "remove-guards") co_return fail(Errc::Unsupported, call.verb + " is not simulated");
  std::set<std::string> keep;
  if (const json::array* points = get_array(call.request, "keep")) {
    for (const json::value& point : *points) keep.emplace(point.as_string());
  }
  auto work = [&host = host_, keep]() -> Turn<json::object> {
    std::erase_if(host.state.guards, [&](const std::string& guarded) {
      if (keep.contains(guarded)) return false;
      host.root.at(guarded).is_immutable = false;
      return true;
    });
    return Result<json::object>(json::object{});
  };
  Work<json::object> asked = std::move(work);
  co_return co_await host_.workers.run("mount points", "remove-guards", *call.deadline, std::move(asked));
}

Daemon::Daemon(Host& host, const config::Config& config, OnEnd on_end)
    : host_(host),
      on_end_(std::move(on_end)),
      started_(host.scene.time.steady()),
      context_(std::make_unique<asio::io_context>(BOOST_ASIO_CONCURRENCY_HINT_UNSAFE)),
      runner_(host) {
  host_.scene.time.attach(*context_);
  auto make_seams = [&host](const config::Volume& volume, const std::optional<config::Target>&) {
    return seams_of(host, volume.name);
  };
  auto on_change = [&host](const volumes::Volume& volume, volumes::State before) {
    if (!host.scene.is_told()) return;
    const volumes::Status& status = volume.status();
    std::string said = "  " + host.name + ": volume " + volume.settings().name + ": ";
    if (before != status.state) said += std::string(to_string(before)) + " -> ";
    said += to_string(status.state);
    host.scene.tell(said + (status.reason.empty() ? "" : ": " + status.reason));
  };
  volumes_ =
      std::make_unique<volumes::VolumeSet>(context_->get_executor(), runner_, std::move(make_seams),
                                           host.scene.time, "/var/lib/spark-stage", std::move(on_change));
  volumes_->start(config);
}

// The coroutines go with the context. They own the volumes, and hold references to the set's runner.
Daemon::~Daemon() {
  host_.scene.time.detach(*context_);
  volumes_.reset();
  context_.reset();
}

bool Daemon::is_busy(const std::string& volume) const {
  return std::ranges::any_of(requests_, [&](const RequestPtr& one) {
    return !one->result && (one->volume == volume || one->volume.empty());
  });
}

std::vector<std::string> Daemon::unrecorded() const {
  std::vector<std::string> names;
  for (const VolumePtr& volume : volumes_->all()) {
    if (volume->status().warnings.contains(volumes::Warning::Unrecorded))
      names.push_back(volume->settings().name);
  }
  return names;
}

bool Daemon::is_reloading() const {
  return std::ranges::any_of(requests_,
                             [](const RequestPtr& one) { return !one->result && one->ask == Ask::Reload; });
}

RequestPtr Daemon::begin(Ask ask, const std::string& volume) {
  const auto request = std::make_shared<Request>();
  request->ask = ask;
  request->volume = volume;
  request->since = host_.scene.time.steady();
  std::erase_if(requests_, [](const RequestPtr& one) { return one->result.has_value(); });
  for (const RequestPtr& other : requests_) {
    if (other->volume != volume && !other->volume.empty() && !volume.empty()) continue;
    other->has_overlapped = request->has_overlapped = true;
  }
  requests_.push_back(request);
  return request;
}

void Daemon::end(const RequestPtr& request, Result<> result) {
  request->result = std::move(result);
  if (host_.scene.is_told()) {
    host_.scene.tell("  " + host_.name + ": " + to_string(request->ask) + " " + request->volume + ": " +
                     (*request->result ? "done" : request->result->error().message()));
  }
  on_end_(*request);
}

void Daemon::ask(Ask ask, const std::string& volume) {
  const VolumePtr found = volumes_->find(volume);
  if (!found) return;
  const auto request = begin(ask, volume);
  auto work = [](Daemon& self, VolumePtr wanted, RequestPtr its) -> asio::awaitable<void> {
    Result<> done;
    if (its->ask == Ask::Up) {
      const auto writable = co_await wanted->publication().make_writable();
      const auto up = co_await wanted->requests().keep_up();
      done = up ? writable : up;
    } else if (its->ask == Ask::Down) {
      done = co_await wanted->requests().keep_down("root");
    } else if (its->ask == Ask::Take) {
      const auto taken = co_await wanted->requests().take();
      if (!taken) done = fail(taken.error());
    } else {
      const auto then =
          its->ask == Ask::Publish ? mounts::AfterPublish::ReadOnly : mounts::AfterPublish::Writable;
      const auto published = co_await wanted->publication().publish(then);
      if (!published) done = fail(published.error());
    }
    self.end(its, std::move(done));
  };
  launch(context_->get_executor(), "a request", work(*this, found, request));
}

void Daemon::reload(config::Config wanted) {
  const auto request = begin(Ask::Reload, "");
  auto work = [](Daemon& self, config::Config config, RequestPtr its) -> asio::awaitable<void> {
    const auto steps = co_await self.volumes_->apply(config);
    std::string refused;
    for (const config::Step& step : steps) {
      if (!step.refused.empty()) refused += step.volume + ": " + step.refused + " ";
    }
    self.end(its, refused.empty() ? Result<>() : Result<>(fail(Errc::Refused, refused)));
  };
  launch(context_->get_executor(), "a reload", work(*this, std::move(wanted), request));
}

void Daemon::controller_changed(const std::string& controller) {
  asio::post(*context_, [this, controller] { volumes_->controller_changed(controller); });
}

void Daemon::namespace_added() {
  asio::post(*context_, [this] { volumes_->namespace_added(); });
}

}  // namespace spark::histories
