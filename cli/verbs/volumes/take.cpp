// `volumes take`: the only command that ends another host's right to write. It announces its steps, and asks.

#include "base/text.hpp"
#include "cli/client/api.hpp"
#include "cli/job.hpp"
#include "cli/say.hpp"
#include "cli/status.hpp"
#include "cli/typed_answer.hpp"
#include "cli/verbs/volumes/verbs.hpp"

namespace spark::cli {
namespace {

struct TakeOptions {
  std::string name, confirm;
  bool yes = false, as_json = false;
};

void print_plan(Context& context, const json::object& volume, const std::string& name) {
  const json::object* fence = get_object(volume, "fence");
  const std::string reason = get_text(volume, "reason");
  const std::string holder = fence == nullptr ? "" : get_text(*fence, "held_by");
  warn(context, "Volume " + printable(name) + " is " +
                    printable(get_string(volume, "state").value_or("in an unknown state")) +
                    (reason.empty() ? "" : ": " + printable(reason)) + "\n");
  context.err << "Taking it over from " << (holder.empty() ? "its holder" : printable(holder)) << ":\n"
              << "  1. takes the namespace's reservation, where it offers one: from then on the\n"
                 "     target refuses that host's writes\n"
                 "  2. waits about 22 s, for that host's last writes to end, and for multi-mount\n"
                 "     protection, where the file system has it: refused if that host still writes\n"
                 "  3. mounts it here for writing; the journal is replayed\n"
                 "Data not flushed by that host is lost. If the namespace offers no\n"
                 "reservations nothing stops that host when it comes back, and its late writes\n"
                 "destroy the file system: switch it off first.\n";
}

Result<int> take(Context& context, const TakeOptions& options) {
  const auto status = ask_volumes(context, {options.name});
  if (!status) return status.take_error();
  const auto volume = volume_of(*status, options.name);
  if (!volume) return volume.take_error();
  if (get_object(*volume, "fence") == nullptr) {  // the daemon would refuse it, after the question
    return fail(
        Errc::Refused,
        "volume " + printable(options.name) + " can't be taken over: it is not exclusive, or has no fence",
        "taking over is for `access: exclusive` with another `fence` than none");
  }
  const std::string reason = get_text(*volume, "reason");
  if (get_string(*volume, "state") == "ready" && !reason.empty()) {  // published here, among others
    return fail(
        Errc::Refused,
        "volume " + printable(options.name) + " is mounted here, and is not taken over: " + printable(reason),
        "`sudo spark-stage volumes up " + printable(options.name) +
            "` makes it writable; if another host has it, and is gone for good, `sudo spark-stage "
            "volumes down " +
            printable(options.name) + "` first, then take it over");
  }
  // The status may be older than another host's takeover: the daemon looks again, and changes nothing.
  const bool was_ready = get_string(*volume, "state") == "ready";
  if (!was_ready) print_plan(context, *volume, options.name);
  if (!was_ready && !options.yes) {
    auto agreed = ask_to_type(context, {"the volume's name", options.name, options.confirm,
                                        "nothing was done", "`--yes` skips the question"});
    if (!agreed) return agreed.take_error();
  }
  const std::string body = was_ready ? R"({"if_here":true})" : "";
  const auto result =
      run_job(context, {"POST", "/v1/volumes/" + percent_encoded(options.name) + "/take", body});
  if (!result) return result.take_error();
  if (options.as_json) return show_json(context, *result);
  const std::string from = get_text(*result, "taken_from");
  say(context,
      printable(options.name) + (was_ready && from.empty() ? ": ready here already"
                                 : from.empty()            ? ": mounted here; it was not held"
                                                : ": mounted here, taken over from " + printable(from)));
  return 0;
}

}  // namespace

void add_take(App& app, const Verb& group) {
  const auto options = std::make_shared<TakeOptions>();
  Verb verb = app.verb_of(group, "take", "take an exclusive volume over from a host that is gone",
                          "  sudo spark-stage volumes take models         announces its steps, and asks\n"
                          "  sudo spark-stage volumes take models --yes   for scripts",
                          [options](Context& context) { return take(context, *options); });
  verb.argument("NAME", options->name, "volume of the config");
  verb.flag("--yes", options->yes, "do not ask");
  verb.option("--confirm", "NAME", options->confirm, "the volume's name, typed here instead");
  verb.flag("--json", options->as_json, "the former holder, as JSON");
}

}  // namespace spark::cli
