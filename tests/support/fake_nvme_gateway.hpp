// A fabric in memory, with targets that refuse or vanish. Connections appear in a FakeSysfs for the code
// under test.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "nvmetcp/connect/fabrics_options.hpp"
#include "nvmetcp/connect/gateway.hpp"
#include "nvmetcp/connect/removal.hpp"
#include "nvmetcp/discovery/exclusions.hpp"
#include "nvmetcp/resolve.hpp"
#include "nvmetcp/sysfs/adoption.hpp"
#include "nvmetcp/sysfs/registry.hpp"
#include "nvmetcp/sysfs/sysfs.hpp"
#include "nvmetcp/sysfs/timers.hpp"
#include "nvmetcp/validate.hpp"
#include "tests/support/fake_sysfs.hpp"
#include "tests/support/fake_targets.hpp"

namespace spark::test {

class FakeNvmeGateway final : public nvmetcp::NvmeGateway {
 public:
  explicit FakeNvmeGateway(FakeSysfs& sysfs) : sysfs_(sysfs) {}

  // --- the script ---

  FakeTargets& targets() { return targets_; }
  // The target loses power: its controllers start to reconnect. Or it returns.
  void vanish(const nvmetcp::Portal& portal) { set_reachable(portal, false); }
  void come_back(const nvmetcp::Portal& portal) { set_reachable(portal, true); }
  // The kernel gives up: it deletes the controllers of the portal.
  void lose_controllers(const nvmetcp::Portal& portal) {
    for (const std::string& name : controllers_at(portal)) take_away(name);
  }
  void set_discovery_service(bool there) { discovery_service_ = there; }
  void set_unsupported_options(std::set<std::string> names) { unsupported_ = std::move(names); }

  // "discover 10.0.0.5:4420", "connect nqn.x 10.0.0.5:4420", "disconnect nvme1"
  const std::vector<std::string>& calls() const { return calls_; }

  // --- NvmeGateway ---

  Result<nvmetcp::DiscoveryLog> discover(const nvmetcp::Portal& portal, const nvmetcp::HostIdentity& host,
                                         const std::string&) override {
    calls_.push_back("discover " + to_string(portal));
    if (auto valid = validate(portal); !valid) return valid.take_error();
    if (auto reached = targets_.reach(portal); !reached) return reached.take_error();
    if (!discovery_service_) return fail(Errc::Unsupported, to_string(portal) + " has no discovery service");
    return targets_.log_for(portal, host);
  }

  Result<nvmetcp::Connection> watch_discovery(const nvmetcp::Portal& portal,
                                              const nvmetcp::HostIdentity& host,
                                              const std::string& interface) override {
    calls_.push_back("watch " + to_string(portal));
    if (auto valid = validate(portal); !valid) return valid.take_error();
    const auto all = nvmetcp::list_controllers(sysfs_.root());
    if (!all) return all.take_error();
    if (const auto ours = nvmetcp::find_own_discovery(*all, {portal}, host, interface))
      return nvmetcp::Connection{ours->name, Change::AlreadyThere, {}};
    if (auto reached = targets_.reach(portal); !reached) return reached.take_error();
    if (!discovery_service_) return fail(Errc::Unsupported, to_string(portal) + " has no discovery service");
    const auto allowed =
        nvmetcp::check_not_excluded(sysfs_.root(), nvmetcp::kDiscoveryNqn, portal, host, interface);
    if (!allowed) return allowed.take_error();
    const std::string name = "nvme" + std::to_string(next_instance_++);
    nvmetcp::Controller controller = tcp_controller(name, nvmetcp::kDiscoveryNqn);
    controller.portal = portal;
    controller.host_nqn = host.nqn;
    controller.host_id = host.id;
    controller.interface = interface;
    sysfs_.add_controller(controller);
    (void)nvmetcp::claim(sysfs_.root(), name);
    watched_by_[name] = host;
    return nvmetcp::Connection{name, Change::Done, {}};
  }

  Result<nvmetcp::DiscoveryLog> read_discovery(const std::string& controller) override {
    calls_.push_back("read " + controller);
    const auto all = nvmetcp::list_controllers(sysfs_.root());
    if (!all) return all.take_error();
    const auto found = std::ranges::find(*all, controller, &nvmetcp::Controller::name);
    if (found == all->end() || found->owner != nvmetcp::kOwner || !found->is_discovery)
      return fail(Errc::NotFound, controller + " is not there any more");
    if (!found->is_live()) return fail(Errc::Unavailable, controller + " is " + found->state);
    return targets_.log_for(found->portal, watched_by_[controller]);
  }

  Result<nvmetcp::Connection> connect(const std::string& subsystem, const nvmetcp::Portal& portal,
                                      const nvmetcp::HostIdentity& host,
                                      const nvmetcp::ConnectOptions& options) override {
    calls_.push_back("connect " + subsystem + " " + to_string(portal));
    for (auto valid : {nvmetcp::validate_nqn(subsystem, "subsystem"), validate(portal), validate(options)}) {
      if (!valid) return valid.take_error();
    }
    auto all = nvmetcp::list_controllers(sysfs_.root());
    if (!all) return all.take_error();
    auto adopted = nvmetcp::find_adoptable(*all, subsystem, {portal}, host, options.interface);
    if (!adopted) return adopted.take_error();
    if (*adopted) return adopt(**adopted, options);
    if (auto alone = nvmetcp::check_host_conflict(*all, host); !alone) {
      return alone.take_error();
    }
    if (auto reached = targets_.reach(portal); !reached) return reached.take_error();
    const auto allowed =
        nvmetcp::check_not_excluded(sysfs_.root(), subsystem, portal, host, options.interface);
    if (!allowed) return allowed.take_error();
    return create(subsystem, portal, host, options);
  }

  Result<Change> disconnect(const std::string& controller, const std::string& subsystem,
                            const nvmetcp::CutOff& cut_off) override {
    calls_.push_back("disconnect " + controller);
    const auto all = nvmetcp::list_controllers(sysfs_.root());
    for (const auto& one : all.value_or(std::vector<nvmetcp::Controller>{})) {
      if (one.name != controller) continue;
      if (one.subsystem != subsystem) {
        return fail(Errc::Refused, controller + " belongs to " + one.subsystem + ", not to " + subsystem);
      }
      if (nvmetcp::is_foreign(one)) return fail(Errc::Refused, controller + " belongs to " + one.owner);
      const auto free = nvmetcp::check_unused(sysfs_.root(), {controller}, cut_off);
      if (!free) return fail(free.error());
      take_away(controller);
      return Change::Done;
    }
    return Change::AlreadyThere;
  }

 private:
  Result<nvmetcp::Connection> adopt(const nvmetcp::Controller& controller,
                                    const nvmetcp::ConnectOptions& options) {
    if (!nvmetcp::is_foreign(controller)) {
      show_timers(controller.name, options);
      (void)nvmetcp::claim(sysfs_.root(), controller.name);
    }
    return nvmetcp::Connection{controller.name, Change::AlreadyThere,
                               nvmetcp::differences(sysfs_.root(), controller, options)};
  }

  Result<nvmetcp::Connection> create(const std::string& subsystem, const nvmetcp::Portal& portal,
                                     const nvmetcp::HostIdentity& host,
                                     const nvmetcp::ConnectOptions& options) {
    for (const auto& option : nvmetcp::io_controller_options(subsystem, portal, host, options, 4)) {
      if (unsupported_.contains(option.name)) {
        return fail(Errc::Unsupported, "this kernel does not know the connection option " + option.name);
      }
    }
    const FakeExport* found = targets_.find(portal, subsystem);
    if (found == nullptr) return fail(Errc::NotFound, "the target has no subsystem " + subsystem);
    if (!found->allows(host)) return fail(Errc::Denied, "the target does not allow this host");
    const std::string name = "nvme" + std::to_string(next_instance_++);
    nvmetcp::Controller controller = tcp_controller(name, subsystem);
    controller.portal = portal;
    controller.host_nqn = host.nqn;
    controller.host_id = host.id;
    controller.interface = options.interface;
    sysfs_.add_controller(controller);
    show_timers(name, options);
    sysfs_.write(FakeSysfs::controller_folder(name) + "/kato", std::to_string(options.keep_alive.count()));
    show_namespace(*found, name);
    (void)nvmetcp::claim(sysfs_.root(), name);
    return nvmetcp::Connection{name, Change::Done, {}};
  }

  // One head per subsystem, shared by its controllers, as with native multipath.
  void show_namespace(const FakeExport& one, const std::string& controller) {
    const auto [entry, is_new] = heads_.try_emplace(one.subsystem, heads_.size() + 100);
    const std::string number = std::to_string(entry->second);
    const std::string head = "nvme" + number + "n1";
    if (is_new) sysfs_.add_head(head, one.nsid, "259:" + number, one.bytes / 512);
    sysfs_.add_node(controller, "nvme" + number + "c" + controller.substr(4) + "n1", one.nsid);
  }

  void show_timers(const std::string& name, const nvmetcp::ConnectOptions& options) {
    const std::string folder = FakeSysfs::controller_folder(name) + "/";
    const auto seconds = [](const std::optional<std::chrono::seconds>& time) {
      return time ? std::to_string(time->count()) : std::string("off");
    };
    sysfs_.write(folder + "reconnect_delay", seconds(options.reconnect_delay));
    sysfs_.write(folder + "ctrl_loss_tmo", seconds(options.controller_loss));
    sysfs_.write(folder + "fast_io_fail_tmo", seconds(options.fast_fail));
  }

  void take_away(const std::string& name) {
    const auto all = nvmetcp::list_controllers(sysfs_.root()).value_or(std::vector<nvmetcp::Controller>{});
    sysfs_.remove(FakeSysfs::controller_folder(name));
    nvmetcp::disown(sysfs_.root(), name);
    const auto leaving =
        std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
    if (leaving == all.end() || nvmetcp::controllers_of(all, leaving->subsystem, "").size() > 1) return;
    const auto head = heads_.find(leaving->subsystem);
    if (head == heads_.end()) return;
    sysfs_.remove("sys/class/block/nvme" + std::to_string(head->second) + "n1");
    heads_.erase(head);
  }

  std::vector<std::string> controllers_at(const nvmetcp::Portal& portal) {
    std::vector<std::string> names;
    for (const auto& one :
         nvmetcp::list_controllers(sysfs_.root()).value_or(std::vector<nvmetcp::Controller>{})) {
      if (one.portal == portal) names.push_back(one.name);
    }
    return names;
  }

  void set_reachable(const nvmetcp::Portal& portal, bool reachable) {
    targets_.set_reachable(portal, reachable);
    for (const std::string& name : controllers_at(portal)) {
      sysfs_.write(FakeSysfs::controller_folder(name) + "/state", reachable ? "live" : "connecting");
    }
  }

  FakeSysfs& sysfs_;
  FakeTargets targets_;
  std::set<std::string> unsupported_;
  std::map<std::string, std::size_t> heads_;                 // subsystem → number in its device names
  std::map<std::string, nvmetcp::HostIdentity> watched_by_;  // discovery controller → its host
  std::vector<std::string> calls_;
  int next_instance_ = 1;
  bool discovery_service_ = true;
};

}  // namespace spark::test
