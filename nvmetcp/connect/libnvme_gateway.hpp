// The fabric of this machine's kernel. The files that see libnvme: libnvme_*.cpp.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "nvmetcp/connect/fabrics_device.hpp"
#include "nvmetcp/connect/gateway.hpp"
#include "nvmetcp/security/keys.hpp"

namespace spark::nvmetcp {

// How long each step may take. Their sum bounds a call on a target that is slow but alive; the caller's
// deadline has to be longer, or a discovery controller is left behind when the worker is killed.
inline constexpr std::chrono::milliseconds kReachDeadline{3000};    // one TCP connection, for each address
inline constexpr std::chrono::milliseconds kLogReadDeadline{5000};  // one Get Log Page command
// A disconnect. A silent target costs up to two keep-alives and an attempt to reconnect before it is done.
inline constexpr std::chrono::milliseconds kRemovalDeadline{30000};

class LibnvmeGateway final : public NvmeGateway {
 public:
  explicit LibnvmeGateway(SystemRoot root) : root_(std::move(root)) {}

  // ^C and SIGTERM wait until it returns, so that the discovery controller is always taken away again.
  Result<DiscoveryLog> discover(const Portal& portal, const HostIdentity& host,
                                const std::string& interface) override;
  Result<Connection> watch_discovery(const Portal& portal, const HostIdentity& host,
                                     const std::string& interface) override;
  Result<DiscoveryLog> read_discovery(const std::string& controller) override;
  Result<Connection> connect(const std::string& subsystem, const Portal& portal, const HostIdentity& host,
                             const ConnectOptions& options) override;
  Result<Change> disconnect(const std::string& controller, const std::string& subsystem,
                            const CutOff& cut_off) override;

 private:
  Result<Portal> prepare(const std::vector<Portal>& addresses, const std::string& interface) const;
  Result<std::optional<Connection>> use(const Controller& controller, const std::vector<Controller>& all,
                                        const HostIdentity& host, const ConnectOptions& options) const;
  Result<> check_spare(const Controller& controller, const std::vector<Controller>& all) const;
  Connection adopt(const Controller& controller, const ConnectOptions& options) const;
  Result<Connection> create(const std::string& subsystem, const Portal& numeric, const HostIdentity& host,
                            const ConnectOptions& options) const;
  tl::expected<MadeController, RefusedConnect> create_numbered(const FabricsOptions& asked,
                                                               const Portal& numeric,
                                                               const HostIdentity& host,
                                                               const ConnectOptions& options) const;
  Result<> prove(const MadeController& made, const std::string& subsystem, const ConnectOptions& options,
                 const Keys& keys) const;

  // libnvme_discovery.cpp
  Result<MadeController> create_discovery(const Portal& reached, const HostIdentity& host,
                                          const std::string& interface, DiscoveryUse use) const;
  Result<Change> remove_discovery(const std::string& controller) const;
  void remove_abandoned() const;
  Result<DiscoveryLog> read_log(const std::string& controller, const Portal& reached,
                                bool hears_events) const;

  SystemRoot root_;
};

// The libnvme that is loaded is the one that this program was built for: its structures changed size under
// one soname. Unsupported: another major.minor.
Result<> check_libnvme_version();

}  // namespace spark::nvmetcp
