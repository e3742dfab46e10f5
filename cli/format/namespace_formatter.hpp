// The interface between the verb `volumes format`, which decides and asks, and the code that accesses the
// namespace's device.
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "cli/format/new_filesystem.hpp"
#include "cli/format/unfinished_format.hpp"
#include "nvmetcp/reservations/reservation_hold.hpp"

namespace spark::cli {

struct FormatRequest {
  std::string device;       // "/dev/nvme3n1"
  dev_t device_number = 0;  // the device expected under that name
  std::string subsystem;    // named in errors, with the namespace's number
  std::uint32_t nsid = 0;
  nvmetcp::LocalRegistrant us;
  bool may_reserve = true;    // the volume's fence takes a reservation where one is offered
  bool must_reserve = false;  // … and there is no volume without one
  NewFilesystem filesystem;
  UnfinishedFormat unfinished;
};

class NamespaceFormatter {
 public:
  virtual ~NamespaceFormatter() = default;
  // Changes nothing. Refused: the namespace is not blank, is in use, or another host holds its reservation.
  // Returns its present state; Unsupported if none is taken.
  virtual Result<nvmetcp::Hold> look(const FormatRequest& request) = 0;
  // Looks again, takes the reservation and makes the file system. The reservation stays with this host when
  // it is made, for the mount that follows; when it is not, it is given back if it was free before.
  virtual Result<nvmetcp::Hold> make(const FormatRequest& request) = 0;
};

// In child processes with deadlines, which die with this one.
std::unique_ptr<NamespaceFormatter> make_bounded_formatter();

// The steps of the two, with the device access passed in; for the children, and for tests.
struct FormatDevice {
  std::function<Result<>()> check, make;
};
Result<nvmetcp::Hold> look_before_format(const FormatRequest& request, nvmetcp::ReservationCommands& commands,
                                         const FormatDevice& device);
Result<nvmetcp::Hold> format_under_reservation(const FormatRequest& request,
                                               nvmetcp::ReservationCommands& commands,
                                               const FormatDevice& device);

}  // namespace spark::cli
