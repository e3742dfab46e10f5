// The NVMe/TCP driver of one simulated host: controllers, and the block devices behind them. Behaves as Linux
// does (field notes: a link's loss is noticed by the keep-alive, the kernel reconnects, identities are
// compared after that, the last path takes the device with it).
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tests/histories/volumes/world/network.hpp"
#include "tests/histories/volumes/world/scene.hpp"

namespace spark::histories {

// A namespace's block device. It exists while a controller leads to it, or a mount keeps it; `is_gone`: no
// controller does, and it never comes back.
struct Head {
  int number = 0;      // of the device: 259:number
  std::string device;  // "nvme1n1"
  std::string subsystem;
  std::uint32_t nsid = 0;
  Disk* disk = nullptr;
  std::string ns_uuid;     // as at its first scan
  bool read_only = false;  // BLKROSET
  bool is_gone = false;
  SteadyTime exchanged{};       // when it got another disk of the same identity
  std::uint64_t completed = 0;  // requests
  SteadyTime answered{};        // when a worker of the daemon was answered last

  std::string path() const { return "/dev/" + device; }
  dev_t device_number() const;
};
using HeadPtr = std::shared_ptr<Head>;

// A controller.
struct Connection {
  nvmetcp::Controller shown;
  std::vector<HeadPtr> heads;
  bool by_hand = false;
  bool while_down = false;  // made by hand while an operator wanted its volumes down
  int round = 0;            // counts changes of the network that concern it
};

enum class Io { Good, Blocked, Gone };

class NvmeDriver {
 public:
  struct Events {
    std::function<void(const HeadPtr&, Actor)> gone;
    std::function<void(const std::string& controller)> changed;
    std::function<void()> namespace_added;
  };
  NvmeDriver(Scene scene, Network& network, std::size_t host, nvmetcp::HostIdentity identity, Events events);

  // Creates a controller; its namespaces are there when it returns. Returns its name.
  Result<std::string> connect(const std::string& subsystem, const nvmetcp::Portal& numeric, Actor by);
  void remove(const std::string& controller, Actor by);
  // Called after each change of the network. `is_abrupt`: connections that ended were reset, not silent.
  void network_changed(bool is_abrupt);
  void rescan(const std::string& controller);
  void claim(const std::string& controller);  // as owned by spark-stage
  void reboot();

  std::vector<Connection>& connections() { return connections_; }
  const std::vector<nvmetcp::Controller>& controllers() const { return shown_; }
  Connection* find(const std::string& controller);
  HeadPtr head_of(const std::string& path) const;
  HeadPtr head_of(dev_t device) const;
  // The devices that only this controller leads to.
  std::vector<HeadPtr> lost_with(const std::vector<std::string>& leaving) const;

  Io io(Head& head);
  // The target accepts this host's writes.
  bool has_live_path(const Head& head) const;  // as far as the kernel knows
  bool may_write(const Head& head) const;
  const nvmetcp::HostIdentity& identity() const { return identity_; }
  // When a connection was made, or the state of one changed, last.
  SteadyTime changed() const { return changed_; }

 private:
  bool is_usable(const Connection& connection);
  void after(Duration wait, const std::string& controller, int round, std::function<void(Connection&)> work);
  void reconnect(Connection& connection);
  void scan(Connection& connection);
  HeadPtr make_head(const Connection& connection, std::uint32_t nsid, Disk& disk);
  void drop(Connection& connection, const HeadPtr& head, Actor by);
  void set_state(Connection& connection, const std::string& state);
  void show();

  Scene scene_;
  Network& network_;
  std::size_t host_;
  nvmetcp::HostIdentity identity_;
  Events events_;
  std::vector<Connection> connections_;
  std::vector<nvmetcp::Controller> shown_;
  SteadyTime changed_{};
  std::vector<std::weak_ptr<Head>> heads_;
};

}  // namespace spark::histories
