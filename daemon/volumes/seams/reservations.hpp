// The seam to the reservation of a volume's namespace: one function.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "base/result.hpp"
#include "nvmetcp/reservations/reservation_hold.hpp"

namespace spark::volumes {

namespace asio = boost::asio;

// The namespace is checked, because a device name may belong to another volume by the time of the call.
struct NamespaceOf {
  std::string subsystem;
  std::uint32_t nsid = 0;
};

// Operations on a namespace's reservation: nvmetcp/reservations/reservation_hold.hpp.
enum class ReservationAct { Look, Hold, Take, Release };
struct ReservationRequest {
  ReservationAct act = ReservationAct::Look;
  std::string device;
  NamespaceOf of;
};

// Runs in a worker and ends by its deadline. Release returns Free, or the new holder.
using Reserve = std::function<asio::awaitable<Result<nvmetcp::ReservationState>>(ReservationRequest request)>;

}  // namespace spark::volumes
