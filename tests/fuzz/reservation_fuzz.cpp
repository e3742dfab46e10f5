// Whatever a target sends as its reservation report, what comes out is what reservation.hpp promises.
#include <cstdint>
#include <cstdlib>

#include "base/text.hpp"
#include "nvmetcp/reservations/reservation.hpp"

namespace {

using namespace spark;
using namespace spark::nvmetcp;

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto report = parse_reservation_report({reinterpret_cast<const std::byte*>(data), size});
  if (!report) {
    require(printable(report.error().what) == report.error().what);
    return 0;
  }
  require(report->registrants.size() * 64 + 64 <= size);
  for (const Registrant& registrant : report->registrants) {
    require(registrant.host_id.size() == 36 && printable(registrant.host_id) == registrant.host_id);
  }
  return 0;
}
