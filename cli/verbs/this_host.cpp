#include "cli/verbs/this_host.hpp"

#include <sys/timex.h>

#include <memory>
#include <optional>
#include <thread>

#include "base/file.hpp"
#include "cli/client/api.hpp"
#include "cli/client/bounded_call.hpp"
#include "cli/say.hpp"
#include "cli/view/screens.hpp"
#include "cli/view/text.hpp"
#include "daemon/config/parse.hpp"
#include "doctor/checks/copied_identity.hpp"
#include "doctor/network/ingress_nic.hpp"
#include "doctor/network/read_rate.hpp"
#include "fleet/transport/key.hpp"
#include "nvmetcp/connect/libnvme_gateway.hpp"
#include "nvmetcp/resolve.hpp"

namespace spark::cli {
namespace {

constexpr std::int64_t kUnknownLink = 1'250'000'000;  // bytes per second, as the daemon assumes
constexpr std::chrono::milliseconds kConnect{2'000};
constexpr Duration kOneLook{5'000};  // of one look at a drive, a device or the name service

bool clock_is_synchronised() {
  timex asked{};  // modes = 0: nothing is set
  return ::adjtimex(&asked) != TIME_ERROR;
}

Result<Bytes> read_beginning(const std::string& device) {
  return call_bounded(kOneLook, [&] { return doctor::read_beginning(device); });
}

Result<nvmetcp::ReservationReport> read_reservation(const std::string& device, std::uint32_t nsid) {
  return call_bounded(kOneLook, [&] { return doctor::ask_reservation(device, nsid); });
}

// Bytes per second that this host may send now: while one of its datasets is leased, that of fleet.upload.
Bytes upload_limit(const config::FleetSettings& settings, const doctor::Host& host) {
  const auto status = host.ask_daemon();
  const json::object* fleet = status ? get_object(*status, "fleet") : nullptr;
  if (fleet == nullptr || !get_bool(*fleet, "limited").value_or(false)) return 0;
  const auto link = static_cast<double>(get_int(*fleet, "link_bytes_per_second").value_or(kUnknownLink));
  return settings.upload.percent > 0 ? static_cast<Bytes>(link * settings.upload.percent / 100)
                                     : settings.upload.bytes;
}

}  // namespace

doctor::Host this_host(const Context& context) {
  return {context.root, config::load(context.config_file), context.run_tool,
          [](const std::function<Result<json::object>()>& work) { return call_bounded(kOneLook, work); },
          context.socket, kernel_release(), context.is_root, clock_is_synchronised(),
          nvmetcp::check_libnvme_version(), std::max(1U, std::thread::hardware_concurrency()), read_beginning,
          read_reservation,
          [](const nvmetcp::Portal& numeric, const std::string& interface) {
            return nvmetcp::negotiated_packet(numeric, interface, kOneLook);
          },
          // Several checks ask: of a daemon that hangs, one waits.
          [&context, failed = std::make_shared<std::optional<Error>>()]() -> Result<json::object> {
            if (*failed) return fail(**failed);
            auto status = call(*context.client, {"GET", "/v1/status", {}});
            if (!status) *failed = status.error();
            return status;
          }};
}

doctor::LinkMeter link_meter(Context& context, const doctor::Host& host, bool is_full) {
  fleet::MeasureLimits limits;
  if (is_full) limits.share = 1;
  doctor::LinkMeter meter;
  meter.read = [share = limits.share](const std::string& device) {
    return call_bounded(kOneLook, [&] { return doctor::read_rate(device, share); });
  };
  const Terminal terminal = context.terminal;
  std::ostream* const err = terminal.err && !terminal.is_quiet ? &context.err : nullptr;
  meter.progress = [err, terminal](const std::string& words) {
    if (err != nullptr) *err << "\r\x1b[2K" << cut_short(words, terminal.columns - 1) << std::flush;
  };
  const config::FleetSettings& settings = host.settings().fleet;
  if (settings.listen.empty()) return meter;
  const auto key = fleet::read_key(settings.key_file);
  const auto security = key ? fleet::Security::make(*key, "spark-stage fleet test")
                            : Result<std::shared_ptr<fleet::Security>>(key.take_error());
  if (!security) {
    meter.error = security.error();
    return meter;
  }
  limits.rate = upload_limit(settings, host);
  meter.look = [security = *security](const fleet::Endpoint& peer) {
    return fleet::look_at_peer(security, peer, kConnect);
  };
  meter.measure = [security = *security, limits](const fleet::Endpoint& peer, fleet::Way way) {
    return fleet::measure(security, peer, way, limits);
  };
  return meter;
}

int show_report(Context& context, const doctor::Report& report, bool as_json) {
  const json::object shown = to_json(report);
  if (as_json) {
    show_json(context, shown);
  } else {
    print_links(context.out, context.terminal, shown);
    print_findings(context.out, context.terminal, shown);
  }
  return report.count(doctor::Level::Wrong) > 0 ? 1 : 0;
}

}  // namespace spark::cli
