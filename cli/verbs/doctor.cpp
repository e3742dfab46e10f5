#include "doctor/doctor.hpp"

#include <sys/timex.h>
#include <sys/utsname.h>

#include <thread>

#include "cli/client/api.hpp"
#include "cli/client/bounded_call.hpp"
#include "cli/verbs/verbs.hpp"
#include "cli/view/screens.hpp"
#include "daemon/config/parse.hpp"
#include "doctor/checks/copied_identity.hpp"
#include "doctor/network/ingress_nic.hpp"
#include "nvmetcp/connect/libnvme_gateway.hpp"
#include "nvmetcp/resolve.hpp"

namespace spark::cli {
namespace {

constexpr Duration kOneLook{5'000};  // of one look at a drive, a device or the name service

std::string kernel_release() {
  utsname names{};
  return ::uname(&names) == 0 ? names.release : "of this host";
}

bool clock_is_synchronised() {
  timex asked{};  // modes = 0: nothing is set
  return ::adjtimex(&asked) != TIME_ERROR;
}

Result<Bytes> read_beginning(const std::string& device) {
  const auto answer = call_bounded(kOneLook, [&] { return doctor::read_beginning(device); });
  if (!answer) return answer.take_error();
  return static_cast<Bytes>(get_int(*answer, "bytes").value_or(0));
}

Result<nvmetcp::ReservationReport> read_reservation(const std::string& device, std::uint32_t nsid) {
  const auto answer = call_bounded(kOneLook, [&] { return doctor::ask_reservation(device, nsid); });
  if (!answer) return answer.take_error();
  return doctor::reservation_from(*answer);
}

doctor::Host this_host(const Context& context) {
  return {context.root,
          config::load(context.config_file),
          context.run_tool,
          [](const std::function<Result<json::object>()>& work) { return call_bounded(kOneLook, work); },
          context.socket,
          kernel_release(),
          context.is_root,
          clock_is_synchronised(),
          nvmetcp::check_libnvme_version(),
          std::max(1U, std::thread::hardware_concurrency()),
          read_beginning,
          read_reservation,
          [](const nvmetcp::Portal& numeric, const std::string& interface) {
            return nvmetcp::negotiated_packet(numeric, interface, kOneLook);
          },
          [&context] {
            return call(*context.client, {"GET", "/v1/status", {}});
          }};
}

Result<int> examine(Context& context, bool as_json) {
  const doctor::Report report = doctor::examine(this_host(context));
  if (as_json) {
    context.out << pretty(to_json(report)) << "\n";
  } else {
    print_findings(context.out, context.terminal, to_json(report));
  }
  return report.count(doctor::Level::Wrong) > 0 ? 1 : 0;
}

}  // namespace

void add_doctor(App& app) {
  const auto as_json = std::make_shared<bool>(false);
  Verb verb = app.verb("doctor", "check this host and its network (no daemon)",
                       "  sudo spark-stage doctor\n"
                       "  spark-stage doctor || echo \"something is wrong\"\n"
                       "  spark-stage doctor --json",
                       [as_json](Context& context) { return examine(context, *as_json); });
  verb.flag("--json", *as_json, "as JSON");
}

}  // namespace spark::cli
