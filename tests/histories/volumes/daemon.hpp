// A daemon of a simulated host, from its start until it is killed: the real VolumeSet on an io_context of its
// own.
#pragma once

#include <boost/asio/io_context.hpp>
#include <memory>
#include <set>

#include "daemon/volumes/volume/volume_set.hpp"
#include "tests/histories/volumes/host.hpp"

namespace spark::histories {

// An operator's request, as the API's handlers carry it out (daemon/service/volume_handlers.cpp).
enum class Ask { Up, Down, Take, Publish, PublishThenWrite, Reload };
const char* to_string(Ask ask);

struct Request {
  Ask ask = Ask::Up;
  std::string volume;  // empty: Reload
  SteadyTime since{};
  bool has_overlapped = false;  // another request for the volume was in progress
  std::optional<Result<>> result;
};
using RequestPtr = std::shared_ptr<Request>;

// Only removes guards of mount points.
class GuardRemover final : public workers::Runner {
 public:
  explicit GuardRemover(Host& host) : host_(host) {}

  asio::awaitable<Result<json::object>> run(workers::Call call, workers::Cancellation cancellation) override;
  const std::multiset<std::string>& abandoned() const override { return abandoned_; }
  const workers::WorkerCounts& counts() const override { return counts_; }

 private:
  Host& host_;
  std::multiset<std::string> abandoned_;
  workers::WorkerCounts counts_;
};

class Daemon {
 public:
  using OnEnd = std::function<void(const Request&)>;

  Daemon(Host& host, const config::Config& config, OnEnd on_end);
  // It is killed: whatever it waits for.
  ~Daemon();
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  volumes::VolumeSet& volumes() { return *volumes_; }
  SteadyTime started() const { return started_; }
  const std::vector<RequestPtr>& requests() const { return requests_; }
  bool is_busy(const std::string& volume) const;  // with a request for it
  bool is_reloading() const;
  std::vector<std::string> unrecorded() const;  // volumes that were brought down or up, which is not recorded

  void ask(Ask ask, const std::string& volume);
  void reload(config::Config wanted);
  // Uevents.
  void controller_changed(const std::string& controller);
  void namespace_added();

 private:
  RequestPtr begin(Ask ask, const std::string& volume);
  void end(const RequestPtr& request, Result<> result);

  Host& host_;
  OnEnd on_end_;
  SteadyTime started_;
  std::unique_ptr<asio::io_context> context_;
  GuardRemover runner_;
  std::unique_ptr<volumes::VolumeSet> volumes_;
  std::vector<RequestPtr> requests_;
};

}  // namespace spark::histories
