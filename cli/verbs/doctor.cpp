#include "doctor/doctor.hpp"

#include "cli/verbs/this_host.hpp"
#include "cli/verbs/verbs.hpp"

namespace spark::cli {
namespace {

struct DoctorOptions {
  bool as_json = false, network = false, is_full = false;
};

Result<int> examine(Context& context, const DoctorOptions& options) {
  if (options.is_full && !options.network)
    return fail(Errc::Invalid, "--full is for the measurement of links", "add --network");
  const doctor::Host host = this_host(context);
  doctor::Report report;
  if (options.network) {
    const doctor::LinkMeter meter = link_meter(context, host, options.is_full);
    report = doctor::examine_network(host, meter);
    meter.progress("");
  } else {
    report = doctor::examine(host);
  }
  return print_report(context, report, options.as_json);
}

}  // namespace

void add_doctor(App& app) {
  const auto options = std::make_shared<DoctorOptions>();
  Verb verb = app.verb("doctor", "check this host and its network (no daemon)",
                       "  sudo spark-stage doctor\n"
                       "  spark-stage doctor || echo \"something is wrong\"\n"
                       "  sudo spark-stage doctor --network    measures the links with real data\n"
                       "  spark-stage doctor --json",
                       [options](Context& context) { return examine(context, *options); });
  verb.flag("--network", options->network, "measure the links: peers both ways, reads of targets");
  verb.flag("--full", options->is_full, "with --network: use links all of the time, not a quarter");
  verb.flag("--json", options->as_json, "as JSON");
}

}  // namespace spark::cli
