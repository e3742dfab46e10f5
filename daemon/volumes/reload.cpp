// What a new configuration asks of a volume that is there.
#include "daemon/config/parse.hpp"
#include "daemon/volumes/volume.hpp"

namespace spark::volumes {

// A dead mount that is not held gives nothing but errors already, and another one is not ours to take down.
asio::awaitable<Result<std::string>> Volume::users() {
  const Place place = look_at_mount();
  if (!is_own(place) || may_detach(settings_, place)) co_return std::string();
  co_return co_await actions_->users(settings_.mount);
}

// What a connection refuses is not in force, and is in the next plan again.
asio::awaitable<Result<>> Volume::set_live(config::Volume settings, std::optional<config::Target> target) {
  const auto self = shared_from_this();
  std::swap(settings_, settings);
  std::swap(target_, target);
  auto set = co_await set_timers();
  if (!set) {
    std::swap(settings_, settings);
    std::swap(target_, target);
  }
  co_return set;
}

asio::awaitable<Result<>> Volume::set_timers() {
  if (!settings_.nvme) co_return Result<>{};
  const auto all = actions_->controllers(settings_.nvme->subsystem);
  if (!all) co_return fail(all.error());
  const auto options = config::connect_options(*target_);
  Result<> first_failure;
  for (const nvmetcp::Controller& controller : *all) {
    if (controller.transport != "tcp" || controller.is_going()) continue;
    auto set = co_await actions_->set_timers(controller.name, controller.subsystem, options);
    // A connection that went away meanwhile has no timers; its successor gets the new ones.
    if (!set && set.error().kind != Errc::NotFound && first_failure) first_failure = std::move(set);
  }
  co_return first_failure;
}

}  // namespace spark::volumes
