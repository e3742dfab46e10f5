#include <sys/stat.h>

#include <filesystem>
#include <memory>

#include "cli/new_file.hpp"
#include "cli/verbs/fleet_join.hpp"
#include "cli/verbs/this_host.hpp"
#include "cli/verbs/verbs.hpp"
#include "fleet/transport/key.hpp"

namespace spark::cli {
namespace {

Result<int> make_key(Context& context, const std::string& file) {
  const auto key = fleet::new_key();
  if (!key) return key.take_error();
  if (file.empty()) {
    context.out << *key << "\n";
    return 0;
  }
  const auto folder = std::filesystem::path(file).parent_path();
  if (!folder.empty()) ::mkdir(folder.c_str(), 0700);  // a failure is that of the file
  if (auto written = write_new_file(file, *key + "\n", 0600); !written) return written.take_error();
  return 0;
}

struct TestOptions {
  std::vector<std::string> peers;
  bool as_json = false, is_full = false;
};

Result<int> test_links(Context& context, const TestOptions& options) {
  const doctor::Host host = this_host(context);
  if (!host.config) return host.config.take_error();
  const doctor::LinkMeter meter = link_meter(context, host, options.is_full);
  doctor::Report report;
  auto tested = doctor::test_links(host, meter, options.peers, report);
  meter.progress("");
  if (!tested) return tested.take_error();
  return print_report(context, report, options.as_json);
}

}  // namespace

void add_fleet(App& app) {
  const auto file = std::make_shared<std::string>();
  Verb group = app.group("fleet", "hosts that exchange datasets while staging",
                         "  sudo spark-stage fleet join 10.0.0.2\n  sudo spark-stage fleet test");
  const auto joining = std::make_shared<JoinOptions>();
  Verb join = app.verb_of(group, "join", "set up key, address and peers here, and test the links",
                          "  sudo spark-stage fleet join 10.0.0.2                        on the first host\n"
                          "  sudo spark-stage fleet join 10.0.0.1 --key-file fleet.key   on the other\n"
                          "  sudo spark-stage fleet join spark2=10.0.0.2 spark3=10.0.3.3 --listen 10.0.0.1",
                          [joining](Context& context) { return join_fleet(context, *joining); });
  join.optional_argument("PEER", joining->peers, "an address of another host, or NAME=ADDRESS");
  join.option("--listen", "ADDRESS", joining->listen,
              "this host's own; else that of the card to the first PEER");
  join.option("--key-file", "FILE", joining->key_file, "the fleet's key, - reads it; else one is made");
  Verb key = app.verb_of(group, "key", "make a new key; every host of the fleet needs the same",
                         "  sudo spark-stage fleet key --output /etc/spark-stage/keys/fleet\n"
                         "  spark-stage fleet key    prints it",
                         [file](Context& context) { return make_key(context, *file); });
  key.option("--output", "FILE", *file, "write it to a new file that only its owner can read");
  const auto options = std::make_shared<TestOptions>();
  Verb test = app.verb_of(group, "test", "measure the link to each peer, and name its faults",
                          "  sudo spark-stage fleet test           all peers; status 1 if one is at fault\n"
                          "  sudo spark-stage fleet test spark2    about six seconds\n"
                          "  sudo spark-stage fleet test --full    while no job needs the link\n"
                          "  sudo spark-stage fleet test --json | jq '.links[].faults'",
                          [options](Context& context) { return test_links(context, *options); });
  test.optional_argument("PEER", options->peers, "peers as `status` names them; none: all");
  test.flag("--full", options->is_full, "use the link all of the time, not a quarter of it");
  test.flag("--json", options->as_json, "as JSON");
}

}  // namespace spark::cli
