// The checks' view of a host, and the checks.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/child.hpp"
#include "base/file.hpp"
#include "base/json.hpp"
#include "base/result.hpp"
#include "base/units.hpp"
#include "daemon/config/model.hpp"
#include "doctor/checks/report.hpp"
#include "nvmetcp/reservations/reservation.hpp"

namespace spark::doctor {

// Runs a tool of the system (ip, ping) to its end. NotFound: it is not installed. TimedOut.
using RunTool = std::function<Result<ChildOutput>(const std::vector<std::string>& argv)>;

// Does work that may block in the kernel in a process of its own, for some seconds.
using Bounded = std::function<Result<json::object>(const std::function<Result<json::object>()>& work)>;

// All that the checks see. A test gives its own.
struct Host {
  SystemRoot root;
  Result<config::Config> config;  // NotFound: there is none yet
  RunTool run_tool;
  Bounded bounded;
  std::string socket;  // the daemon's
  std::string kernel;  // its release
  bool is_root = false;
  bool clock_is_synchronised = true;
  Result<> libnvme;  // the loaded one is the one that was built for
  unsigned cpus = 1;

  // Each in a process of its own, with a deadline. TimedOut: no answer by then.

  // Reads the beginning of a device ("/dev/nvme1n1") past the page cache; how much there was.
  std::function<Result<Bytes>(const std::string& device)> read_beginning;
  // The registrants of a namespace's reservation. Unsupported: it offers none.
  std::function<Result<nvmetcp::ReservationReport>(const std::string& device, std::uint32_t nsid)>
      read_reservation;
  // The packet size of a new TCP connection (nvmetcp::negotiated_packet). Unavailable: none came about.
  std::function<Result<unsigned>(const nvmetcp::Portal& numeric, const std::string& interface)>
      negotiated_packet;
  // The daemon's status, as the API gives it. Unavailable: it does not run.
  std::function<Result<json::object>()> ask_daemon;

  // The configuration, or nothing to check against.
  const config::Config& settings() const {
    static const config::Config none;
    return config ? *config : none;
  }
};

// The checks, in the order of the report; each in the file that is named after it or its area.
void check_set_up(const Host& host, Report& report);
void check_kernel(const Host& host, Report& report);
void check_keys(const Host& host, Report& report);
void check_identity(const Host& host, Report& report);
void check_connections(const Host& host, Report& report);
void check_nfs_mounts(const Host& host, Report& report);
void check_volumes(const Host& host, Report& report);
void check_manual_setup(const Host& host, Report& report);
void check_managers(const Host& host, Report& report);
void check_fleet(const Host& host, Report& report);
void check_cache_drive(const Host& host, Report& report);
void check_memory(const Host& host, Report& report);
void check_clock(const Host& host, Report& report);

}  // namespace spark::doctor
