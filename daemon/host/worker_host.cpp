#include "daemon/host/worker_host.hpp"

#include "daemon/discovery/worker_actions.hpp"
#include "daemon/log.hpp"
#include "daemon/volumes/adapters/worker_seams.hpp"
#include "nvmetcp/host_identity.hpp"

namespace spark {

volumes::Seams WorkerHost::seams_of(const config::Volume& volume,
                                    const std::optional<config::Target>& /*target*/) {
  return volumes::worker_seams(context_.runner, context_.snapshot, volume.name, context_.volumes_folder);
}

std::unique_ptr<discovery::Actions> WorkerHost::discovery_of(const config::Target& target) {
  return std::make_unique<discovery::WorkerActions>(context_.runner, context_.snapshot, target.name);
}

Result<> WorkerHost::start(std::function<void(const Uevent&)> heard) {
  if (const auto& host = context_.snapshot.host()) {
    if (const auto doubt = nvmetcp::identity_doubt(*host)) log::warning(*doubt);
  }
  uevents_.emplace(context_.executor, std::move(heard));
  return uevents_->start();
}

void WorkerHost::stop() {
  if (uevents_) uevents_->stop();
}

}  // namespace spark
