// `volumes format`: the first file system of a volume, on an empty namespace. Always announces its steps, and
// asks; needs no daemon, since the daemon never formats.
#include <algorithm>

#include "base/kernel/mount_table.hpp"
#include "base/text.hpp"
#include "cli/client/api.hpp"
#include "cli/format/namespace_formatter.hpp"
#include "cli/job.hpp"
#include "cli/say.hpp"
#include "cli/typed_answer.hpp"
#include "cli/verbs/volumes/verbs.hpp"
#include "daemon/config/parse.hpp"
#include "nvmetcp/host_identity.hpp"
#include "nvmetcp/resolve.hpp"
#include "nvmetcp/sysfs/sysfs.hpp"
#include "nvmetcp/sysfs/target_addresses.hpp"

namespace spark::cli {
namespace {

struct FormatOptions {
  std::string name, type, label, confirm;
  bool as_json = false;
};

// All that is known before the device is touched.
struct Plan {
  config::Volume volume;
  config::Target target;
  nvmetcp::Namespace block;
  FormatRequest request;
};

std::string doing(const std::string& name) {
  return "formatting volume " + printable(name);
}

Result<config::Config> load(const Context& context, const std::string& name) {
  auto loaded = config::load(context.config_file);
  if (loaded || loaded.error().kind != Errc::NotFound) return loaded;
  return fail(Errc::Invalid, doing(name) + ": " + loaded.error().what,
              "`spark-stage discover ADDRESS --yaml` prints a configuration to start from");
}

Result<config::Volume> find(const config::Config& config, const std::string& name) {
  if (const config::Volume* volume = config::find_volume(config, name)) return *volume;
  std::vector<std::string> names;
  for (const config::Volume& volume : config.volumes) names.push_back(volume.name);
  const std::string near = nearest(name, names);
  return fail(Errc::NotFound, "no volume " + printable(name) + " in the configuration",
              near.empty() ? "`spark-stage config show` has them" : "did you mean '" + near + "'?");
}

// The one writer's, and not known to be a file system that should be there.
Result<> check_volume(const SystemRoot& root, const config::Volume& volume) {
  if (!volume.nvme)
    return fail(Errc::Refused,
                doing(volume.name) + ": it is an NFS export, and its server has the file system");
  if (volume.access != config::Access::Exclusive) {
    return fail(Errc::Refused, doing(volume.name) + ": it is read-only here",
                "format it on the host that writes it, which has it as `access: exclusive`");
  }
  if (!volume.nvme->filesystem_uuid.empty()) {
    return fail(Errc::Refused,
                doing(volume.name) + ": the configuration says that it is file system " +
                    volume.nvme->filesystem_uuid,
                "is the right disk exported? If a new one is to be made, take `filesystem: {uuid: …}` out");
  }
  const auto pin = root / ("var/lib/spark-stage/volumes/" + volume.name + ".json");
  const auto text = read_file(pin);
  const auto record = text ? parse_json_object(*text) : Result<json::object>(json::object());
  const std::string uuid = record ? get_text(*record, "uuid") : "unknown";
  if (uuid.empty()) return {};
  return fail(Errc::Refused,
              doing(volume.name) + ": it was file system " + uuid + " when it was mounted here last",
              "is the right disk exported? If a new one is to take its place: `sudo rm " +
                  printable(pin.native()) + "` and `sudo systemctl restart spark-staged`");
}

Result<NewFilesystem> choose_filesystem(const Context& context, const config::Volume& volume,
                                        const FormatOptions& options) {
  const std::string configured = volume.nvme->filesystem_type;
  NewFilesystem made{options.type, options.label, ""};
  if (made.type.empty()) made.type = configured.empty() ? "ext4" : configured;
  if (!configured.empty() && made.type != configured)
    return fail(Errc::Invalid, doing(volume.name) + ": the configuration says that it is " + configured);
  if (made.type == "xfs" && volume.fence != config::Fence::Auto &&
      volume.fence != config::Fence::Reservation) {
    return fail(
        Errc::Refused,
        doing(volume.name) + ": xfs has no multi-mount protection, and its `fence` takes no reservation",
        "make an ext4, or set `fence: reservation`");
  }
  if (made.label.empty()) made.label = volume.name.substr(0, longest_label(made.type));
  if (auto valid = check_label(made.label, made.type); !valid)
    return fail_with(valid.error(), doing(volume.name));
  auto uuid = fresh_uuid(context.root);
  if (!uuid) return fail_with(uuid.error(), doing(volume.name));
  made.uuid = std::move(*uuid);
  return made;
}

nvmetcp::TargetAddresses addresses_of(const config::Target& target) {
  nvmetcp::TargetAddresses addresses;
  addresses.restrict_to({});
  for (const nvmetcp::Portal& portal : target.portals) {
    const auto numeric = nvmetcp::resolve(portal);
    if (!numeric) continue;  // no controller is at it, as far as can be told
    for (const nvmetcp::Portal& one : *numeric) addresses.learn(one);
  }
  return addresses;
}

// Another target may offer the same NQN, and the kernel take the two for one.
Result<> check_no_rival(const Context& context, const config::Volume& volume, const nvmetcp::Namespace& block,
                        const std::vector<nvmetcp::Controller>& others) {
  const auto theirs = nvmetcp::find_namespace(context.root, others, volume.nvme->subsystem, block.nsid);
  if (!theirs || theirs->device_number != block.device_number) return {};
  return fail(Errc::Refused,
              doing(volume.name) + ": /dev/" + printable(block.device) + " is connected at " +
                  nvmetcp::to_string(others.front().portal) + " as well, which is no address of target " +
                  printable(volume.nvme->target),
              "nothing was written; add the address to the target's `portals` if it is its own");
}

// Through a connection of this host's own to the volume's target that is live.
Result<nvmetcp::Namespace> find_block(const Context& context, const config::Volume& volume,
                                      const config::Target& target, const nvmetcp::HostIdentity& host) {
  const std::string& subsystem = volume.nvme->subsystem;
  const auto all = nvmetcp::list_controllers(context.root);
  if (!all) return all.take_error();
  const auto addresses = addresses_of(target);
  const auto connected = nvmetcp::controllers_of(*all, subsystem, host.nqn);
  const auto ours = addresses.ours(connected);
  if (!std::ranges::any_of(ours, [](const auto& controller) { return controller.is_live(); })) {
    return fail(Errc::Unavailable,
                doing(volume.name) + ": subsystem " + printable(subsystem) + " is not connected at target " +
                    printable(target.name),
                "`sudo spark-stage volumes up " + volume.name +
                    "` connects it, and `spark-stage status` shows the problem");
  }
  auto block = nvmetcp::find_namespace(context.root, ours, subsystem, volume.nvme->nsid);
  if (!block) return fail_with(block.error(), doing(volume.name));
  if (auto alone = check_no_rival(context, volume, *block, addresses.strangers(connected)); !alone)
    return alone.take_error();
  return block;
}

Result<> check_not_mounted(const Context& context, const config::Volume& volume,
                           const nvmetcp::Namespace& block) {
  const auto table = mounts::read_mount_table(context.root);
  if (!table) return fail_with(table.error(), doing(volume.name));
  for (const mounts::Mount& mount : *table) {
    const bool is_its = mount.target == volume.mount || mount.device_number == block.device_number;
    if (!is_its) continue;
    return fail(Errc::Refused,
                doing(volume.name) + ": " + printable(mount.source) + " is mounted on " +
                    printable(mount.target.native()),
                "nothing was written; a volume that is mounted has its file system");
  }
  return {};
}

Result<Plan> make_plan(const Context& context, const FormatOptions& options) {
  const auto config = load(context, options.name);
  if (!config) return config.take_error();
  const auto volume = find(*config, options.name);
  if (!volume) return volume.take_error();
  if (auto writer = check_volume(context.root, *volume); !writer) return writer.take_error();
  const auto filesystem = choose_filesystem(context, *volume, options);
  if (!filesystem) return filesystem.take_error();
  const auto host = nvmetcp::read_host_identity(context.root);
  if (!host) return fail_with(host.error(), doing(options.name));
  const config::Target& target = config->targets.at(volume->nvme->target);
  const auto block = find_block(context, *volume, target, *host);
  if (!block) return block.take_error();
  if (auto free = check_not_mounted(context, *volume, *block); !free) return free.take_error();
  Plan plan{*volume, target, *block, {}};
  FormatRequest& request = plan.request;
  request.device = "/dev/" + block->device;
  request.device_number = block->device_number;
  request.subsystem = volume->nvme->subsystem;
  request.nsid = volume->nvme->nsid;
  request.us = nvmetcp::local_registrant(*host, nvmetcp::read_machine(context.root));
  request.may_reserve = volume->fence == config::Fence::Auto || volume->fence == config::Fence::Reservation;
  request.must_reserve = volume->fence == config::Fence::Reservation || filesystem->type == "xfs";
  request.filesystem = *filesystem;
  request.unfinished = UnfinishedFormat(context.root, volume->name, request.subsystem, *block);
  return plan;
}

std::string address_of(const config::Target& target) {
  const nvmetcp::Portal& portal = target.portals.front();
  return target.name + " (" + portal.address + " port " + std::to_string(portal.port) + ")";
}

std::string reservation_words(const Plan& plan, nvmetcp::Hold hold) {
  if (!plan.request.may_reserve) return "none is taken: the volume's `fence` is without";
  if (hold == nvmetcp::Hold::Unsupported) return "the namespace offers none: no other host may touch it now";
  return hold == nvmetcp::Hold::Ours ? "this host has it" : "taken first, so that no other host can write";
}

void print_plan(Context& context, const Plan& plan, nvmetcp::Hold hold) {
  const NewFilesystem& made = plan.request.filesystem;
  const auto row = [&](const std::string& what, const std::string& words) {
    constexpr std::size_t kIndent = 15;
    const std::size_t columns = context.terminal.err ? context.terminal.columns : std::string::npos;
    const std::string title = "  " + what;
    context.err << title << wrapped(words, columns, kIndent).substr(title.size());
  };
  const std::string id = plan.block.id().empty() ? "" : ", " + printable(plan.block.id());
  warn(context, "Volume " + printable(plan.volume.name) + " gets its first file system:\n");
  row("target", printable(address_of(plan.target)));
  row("subsystem", printable(plan.request.subsystem));
  row("namespace", std::to_string(plan.request.nsid) + id);
  row("device", plan.request.device + ", " + format_bytes(plan.block.bytes) + " (" +
                    std::to_string(plan.block.bytes) + " bytes)");
  row("reservation", reservation_words(plan, hold));
  row("file system", made.type + (made.type == "ext4" ? " with multi-mount protection" : "") + ", label " +
                         made.label + ", on the whole namespace");
  row("UUID", made.uuid);
  warn(context,
       plan.request.unfinished.is_there()
           ? "\nIt shows no signature; the remains of an earlier attempt of this host are overwritten."
           : "\nIt shows no signature, and its first and last 4 MiB are empty.");
}

// The next step, in words. The daemon would recheck within half a minute anyway.
std::string tell_daemon(Context& context, const std::string& name) {
  auto job = start_job(context, {"POST", "/v1/volumes/" + percent_encoded(name) + "/up", {}});
  if (!job && job.error().kind == Errc::Unavailable)
    return "spark-staged does not run; it mounts it when it is started";
  ProgressView view(context.err, context.terminal, context.timer);
  const auto told = job ? follow_job(context, std::move(*job), view) : job.take_error();
  if (told) return "spark-staged mounts it now: `spark-stage wait " + printable(name) + "`";
  return "spark-staged was not told: " + told.error().message();
}

void print_made(Context& context, const Plan& plan, nvmetcp::Hold hold, const FormatOptions& options) {
  const NewFilesystem& made = plan.request.filesystem;
  const std::string next = tell_daemon(context, plan.volume.name);
  if (options.as_json) {
    const json::object answer{
        {"volume", plan.volume.name},
        {"subsystem", plan.request.subsystem},
        {"namespace", plan.request.nsid},
        {"device", plan.request.device},
        {"bytes", plan.block.bytes},
        {"filesystem", json::object{{"type", made.type}, {"uuid", made.uuid}, {"label", made.label}}},
        {"mmp", made.type == "ext4"},
        {"reservation", hold == nvmetcp::Hold::Ours},
        {"next", next}};
    show_json(context, answer);
    return;
  }
  say(context, printable(plan.volume.name) + ": " + made.type + " " + made.uuid + " was made on " +
                   plan.request.device + "\n" + next);
}

Result<int> format(Context& context, const FormatOptions& options) {
  if (!context.is_root) {
    return fail(Errc::Denied, doing(options.name) + ": only root may",
                "run `sudo spark-stage volumes format " + printable(options.name) + "`");
  }
  const auto plan = make_plan(context, options);
  if (!plan) return plan.take_error();
  const auto formatter = context.make_formatter();
  const auto before = formatter->look(plan->request);
  if (!before) return before.take_error();
  print_plan(context, *plan, *before);
  auto agreed =
      ask_to_type(context, {"the volume's name", options.name, options.confirm, "nothing was written",
                            "scripts say --confirm " + printable(options.name)});
  if (!agreed) return agreed.take_error();
  const auto made = formatter->make(plan->request);
  if (!made) return made.take_error();
  print_made(context, *plan, *made, options);
  return 0;
}

}  // namespace

void add_format(App& app, const Verb& group) {
  const auto options = std::make_shared<FormatOptions>();
  Verb verb = app.verb_of(group, "format", "make the first file system of an empty namespace",
                          "  sudo spark-stage volumes format models    announces its steps, and asks\n"
                          "  sudo spark-stage volumes format models --type xfs --label weights\n"
                          "  sudo spark-stage volumes format models --confirm models   for scripts",
                          [options](Context& context) { return format(context, *options); });
  verb.argument("NAME", options->name, "exclusive volume of the config");
  verb.choice("--type", "TYPE", options->type, {"ext4", "xfs"}, "ext4 (default), or xfs");
  verb.option("--label", "LABEL", options->label, "of the file system (NAME)");
  verb.option("--confirm", "NAME", options->confirm, "the volume's name, typed here instead");
  verb.flag("--json", options->as_json, "the new file system, as JSON");
}

}  // namespace spark::cli
