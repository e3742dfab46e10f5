// The real host: changed by workers, observed through sysfs and udev.
#pragma once

#include "daemon/host/host.hpp"

namespace spark {

class WorkerHost final : public Host {
 public:
  explicit WorkerHost(HostContext context) : context_(std::move(context)) {}

  volumes::Seams seams_of(const config::Volume& volume, const std::optional<config::Target>& target) override;
  std::unique_ptr<discovery::Actions> discovery_of(const config::Target& target) override;
  Result<> start(std::function<void(const Uevent&)> heard) override;
  void stop() override;
  void limit_to_host(datasets::SourcePlace& /*place*/) const override {}
  bool is_simulated() const override { return false; }

 private:
  HostContext context_;
  std::optional<Uevents> uevents_;
};

}  // namespace spark
