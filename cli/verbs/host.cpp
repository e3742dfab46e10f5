// `host new-identity`: a new NVMe identity of this host. Asks; refused while the current identity is in
// use.
#include <algorithm>

#include "base/kernel/mount_table.hpp"
#include "base/text.hpp"
#include "cli/client/api.hpp"
#include "cli/say.hpp"
#include "cli/typed_answer.hpp"
#include "cli/verbs/verbs.hpp"
#include "daemon/config/parse.hpp"
#include "nvmetcp/host_identity.hpp"
#include "nvmetcp/sysfs/sysfs.hpp"

namespace spark::cli {
namespace {

constexpr char kDoing[] = "making a new host identity";

struct IdentityOptions {
  bool yes = false, as_json = false;
};

std::string line_of(const SystemRoot& root, const char* file) {
  return read_line_file(root / file).value_or("");
}

// Every connection over a network, not only those of the volumes: the kernel has one identity for all of
// them.
Result<> check_not_connected(const SystemRoot& root) {
  const auto all = nvmetcp::list_controllers(root);
  if (!all) return fail_with(all.error(), kDoing);
  std::vector<std::string> connected;
  for (const nvmetcp::Controller& controller : *all) {
    if (controller.transport == "pcie" || controller.is_going()) continue;
    connected.push_back(controller.name + " (" + printable(controller.subsystem) + ", " +
                        printable(controller.state) + ")");
  }
  if (connected.empty()) return {};
  return fail(
      Errc::Refused,
      std::string(kDoing) + ": this host is connected with the one that it has: " + join(connected, ", "),
      "`sudo spark-stage volumes down` disconnects its volumes; for manual connections: `sudo nvme "
      "disconnect -d NAME`");
}

// Of the daemon's volumes, those that are up, or are tried again and again.
std::vector<std::string> volumes_up(const json::object& status) {
  std::vector<std::string> up;
  for (const json::object& volume : objects_in(status, "volumes")) {
    if (get_string(volume, "kind") != "nvme-tcp") continue;
    if (get_string(volume, "state") != "down")
      up.push_back(printable(get_string(volume, "name").value_or("?")));
  }
  return up;
}

Result<> check_volumes_down(Context& context) {
  const auto status = call(*context.client, {"GET", "/v1/status", {}});
  if (!status && status.error().kind != Errc::Unavailable) return fail_with(status.error(), kDoing);
  const auto up = status ? volumes_up(*status) : std::vector<std::string>();
  if (up.empty()) return {};
  return fail(Errc::Refused, std::string(kDoing) + ": volumes are up: " + join(up, ", "),
              "`sudo spark-stage volumes down " + join(up, " ") + "`, then again");
}

// Also without a daemon, and when the device under the mount is gone.
Result<> check_not_mounted(const Context& context) {
  const auto config = config::load(context.config_file);
  const auto table = mounts::read_mount_table(context.root);
  if (!table) return fail_with(table.error(), kDoing);
  std::vector<std::string> mounted;
  for (const config::Volume& volume : config ? config->volumes : std::vector<config::Volume>()) {
    if (volume.nvme && mounts::mounted_at(*table, volume.mount) != nullptr)
      mounted.push_back(volume.name + " on " + printable(volume.mount.native()));
  }
  if (mounted.empty()) return {};
  return fail(Errc::Refused, std::string(kDoing) + ": volumes are mounted: " + join(mounted, ", "),
              "unmount them first: `sudo spark-stage volumes down`, or `sudo umount MOUNT`");
}

void print_plan(std::ostream& out, const nvmetcp::HostIdentity& old, const nvmetcp::HostIdentity& fresh) {
  const auto shown = [](const std::string& text) { return text.empty() ? "(none)" : printable(text); };
  out << "This host gets a new identity; the current files are kept as *.old:\n\n"
      << "  /etc/nvme/hostnqn\n"
      << "     " << shown(old.nqn) << "\n"
      << "  -> " << fresh.nqn << "\n"
      << "  /etc/nvme/hostid\n"
      << "     " << shown(old.id) << "\n"
      << "  -> " << fresh.id << "\n\n"
      << "On every target with an allow list or keys, enter the new NQN in place of\n"
         "the old one. Otherwise the target refuses this host.\n";
}

void print_done(Context& context, const nvmetcp::HostIdentity& old, const nvmetcp::HostIdentity& fresh,
                const std::vector<std::string>& kept, bool as_json) {
  if (as_json) {
    const json::object before{{"nqn", printable(old.nqn)}, {"id", printable(old.id)}};
    const json::object answer{
        {"nqn", fresh.nqn}, {"id", fresh.id}, {"old", before}, {"backups", json::value_from(kept)}};
    show_json(context, answer);
    return;
  }
  context.out << "host NQN " << fresh.nqn << "\n"
              << "Next: enter it on the targets, then `sudo spark-stage volumes up`.\n";
}

Result<int> new_identity(Context& context, const IdentityOptions& options) {
  if (!context.is_root)
    return fail(Errc::Denied, std::string(kDoing) + ": only root may",
                "run `sudo spark-stage host new-identity`");
  // As it stands there: a file that is empty or wrong is a reason for a new one.
  const nvmetcp::HostIdentity old{line_of(context.root, "etc/nvme/hostnqn"),
                                  line_of(context.root, "etc/nvme/hostid")};
  // Without any, volumes that are up wait for this one: the daemon connects none of them.
  const bool is_first = old.nqn.empty() && old.id.empty();
  if (auto down = is_first ? Result<>() : check_volumes_down(context); !down) return down.take_error();
  if (auto unmounted = check_not_mounted(context); !unmounted) return unmounted.take_error();
  if (auto alone = check_not_connected(context.root); !alone) return alone.take_error();
  const auto fresh = nvmetcp::fresh_host_identity(context.root);
  if (!fresh) return fail_with(fresh.error(), kDoing);
  print_plan(context.err, old, *fresh);
  if (!options.yes) {
    auto agreed =
        ask_to_type(context, {"yes", "yes", "", "nothing was changed", "`--yes` skips the question"});
    if (!agreed) return agreed.take_error();
  }
  const auto kept = nvmetcp::write_host_identity(context.root, *fresh);
  if (!kept) return kept.take_error();
  print_done(context, old, *fresh, *kept, options.as_json);
  return 0;
}

}  // namespace

void add_host(App& app) {
  Verb group = app.group("host", "this host's own identity", "  sudo spark-stage host new-identity");
  const auto options = std::make_shared<IdentityOptions>();
  Verb verb = app.verb_of(group, "new-identity", "make a fresh host NQN and host ID (root)",
                          "  sudo spark-stage volumes down\n"
                          "  sudo spark-stage host new-identity         announces its steps, and asks\n"
                          "  sudo spark-stage host new-identity --yes   for scripts",
                          [options](Context& context) { return new_identity(context, *options); });
  verb.flag("--yes", options->yes, "do not ask");
  verb.flag("--json", options->as_json, "the new identity and the old one, as JSON");
}

}  // namespace spark::cli
