#include "base/text.hpp"
#include "cli/client/bounded_call.hpp"
#include "cli/new_file.hpp"
#include "cli/verbs/verbs.hpp"
#include "cli/view/screens.hpp"
#include "nvmetcp/connect/libnvme_gateway.hpp"
#include "nvmetcp/host_identity.hpp"

namespace spark::cli {
namespace {

// Longer than the gateway's own deadlines together, so that it takes its discovery controller away again.
constexpr Duration kDeadline{60'000};

struct DiscoverOptions {
  std::string address, output;
  std::uint16_t port = 4420;
  bool as_json = false, as_yaml = false;
};

const char* to_string(nvmetcp::SubsystemKind kind) {
  static constexpr const char* kWords[] = {"io", "discovery", "referral"};
  return kWords[static_cast<std::size_t>(kind)];
}

json::object to_json(const nvmetcp::DiscoveryLog& log, const nvmetcp::Portal& portal,
                     const nvmetcp::HostIdentity& host) {
  json::array entries, ignored;
  for (const nvmetcp::OfferedSubsystem& entry : log.entries) {
    entries.push_back(json::object{{"nqn", entry.nqn},
                                   {"kind", to_string(entry.kind)},
                                   {"transport", entry.transport},
                                   {"address_family", entry.address_family},
                                   {"address", entry.portal.address},
                                   {"port", entry.portal.port}});
  }
  for (const std::string& sentence : log.ignored) ignored.emplace_back(sentence);
  return {{"target", json::object{{"address", portal.address}, {"port", portal.port}}},
          {"host", json::object{{"nqn", host.nqn}, {"id", host.id}}},
          {"generation", log.generation},
          {"entries", std::move(entries)},
          {"ignored", std::move(ignored)}};
}

Result<int> discover(Context& context, const DiscoverOptions& options) {
  if (options.as_json && options.as_yaml) {
    return fail(Errc::Invalid, "--json and --yaml are two answers", "ask for one of them");
  }
  const std::string doing = "discovering " + printable(options.address) + ":" + std::to_string(options.port);
  if (!context.is_root) {
    return fail(Errc::Denied, doing + ": opening /dev/nvme-fabrics needs root",
                "run `sudo spark-stage discover " + printable(options.address) + "`");
  }
  if (auto same = nvmetcp::check_libnvme_version(); !same) return fail_with(std::move(same.error()), doing);
  const auto host = nvmetcp::read_host_identity(context.root);
  if (!host) return fail_with(host.error(), doing);
  const nvmetcp::Portal portal{options.address, options.port};
  const auto ask = [&]() -> Result<json::object> {
    auto log = context.make_gateway()->discover(portal, *host, "");
    if (!log) return log.take_error();
    return to_json(*log, portal, *host);
  };
  const auto answer = call_bounded(kDeadline, ask);
  if (!answer && answer.error().kind == Errc::TimedOut) {
    return fail(Errc::TimedOut, doing + ": " + answer.error().what,
                "is it the right address, and is port " + std::to_string(options.port) + " open?");
  }
  if (!answer) return answer.take_error();
  const bool as_yaml = options.as_yaml || (!options.output.empty() && !options.as_json);
  if (!as_yaml && !options.as_json) {
    print_discovery(context.out, context.terminal, *answer);
    return 0;
  }
  const std::string text =
      as_yaml ? discovery_as_config(*answer, context.timer.wall()) : pretty(*answer) + "\n";
  if (options.output.empty()) {
    context.out << text;
  } else if (auto written = write_new_file(options.output, text); !written) {
    return written.take_error();
  }
  return 0;
}

}  // namespace

void add_discover(App& app) {
  const auto options = std::make_shared<DiscoverOptions>();
  Verb verb = app.verb("discover", "list a target's subsystems (root, no daemon)",
                       "  sudo spark-stage discover 192.168.0.100\n"
                       "  sudo spark-stage discover rose.lan --port 8009\n"
                       "  sudo spark-stage discover 192.168.0.100 --output spark-stage.yaml",
                       [options](Context& context) { return discover(context, *options); });
  verb.argument("ADDRESS", options->address, "the target's address or host name");
  verb.option("--port", "N", options->port, "its port (4420)");
  verb.flag("--json", options->as_json, "the discovery log, as JSON");
  verb.flag("--yaml", options->as_yaml, "a configuration to start from");
  verb.option("--output", "FILE", options->output, "that configuration as a new file");
}

}  // namespace spark::cli
