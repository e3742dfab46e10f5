#include <algorithm>

#include "base/text.hpp"
#include "cli/client/api.hpp"
#include "cli/job.hpp"
#include "cli/say.hpp"
#include "cli/status.hpp"
#include "cli/verbs/volumes/verbs.hpp"
#include "cli/view/screens.hpp"

namespace spark::cli {
namespace {

struct ChangeOptions {
  std::vector<std::string> names;
  bool force = false, as_json = false;
};

Result<std::vector<std::string>> all_volumes(Context& context) {
  const auto status = ask_status(context);
  if (!status) return status.take_error();
  auto names = volume_names(*status);
  if (names.empty())
    return fail(Errc::NotFound, "no volumes are configured", "see `spark-stage config show`");
  return names;
}

Result<int> list(Context& context, bool as_json) {
  auto status = ask_status(context);
  if (!status) return status.take_error();
  json::object volumes{{"volumes", std::move((*status)["volumes"])}};
  if (as_json) return show_json(context, volumes);
  print_status(context.out, context.terminal, volumes, context.timer.wall());
  return 0;
}

// Begins all, then follows each: one slow volume holds up none of the others. The first failure is the
// status; further ones are printed as well.
Result<int> change_volumes(Context& context, const ChangeOptions& options, const std::string& verb) {
  std::vector<std::string> names = options.names;
  if (std::ranges::find(names, "") != names.end())
    return fail(Errc::Invalid, "a volume's name is empty", "is a variable of a script not set?");
  if (names.empty() && options.force) {
    return fail(Errc::Invalid, "--force is for volumes that are named",
                "name the NFS volume whose server is gone");
  }
  if (names.empty()) {
    auto all = all_volumes(context);
    if (!all) return all.take_error();
    names = std::move(*all);
  }
  context.catch_interrupts();
  std::vector<Result<Job>> jobs;
  json::object down{{"by", context.person}};
  if (options.force) down["force"] = true;
  const std::string body = verb == "down" ? json::serialize(down) : "";
  for (const std::string& name : names) {
    jobs.push_back(start_job(context, {"POST", "/v1/volumes/" + percent_encoded(name) + "/" + verb, body}));
  }
  int status = 0;
  json::array changed;
  ProgressView view(context.err, context.terminal, context.timer);
  const auto failed = [&](const Error& error) {
    const int its_status = report(context, error);
    if (status == 0) status = its_status;
  };
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!jobs[i]) {
      failed(jobs[i].error());
      continue;
    }
    const auto result = follow_job(context, std::move(*jobs[i]), view);
    if (!result) {
      failed(result.error());
      continue;
    }
    changed.push_back(*result);
    if (options.as_json) continue;
    const std::string state = get_string(*result, "state").value_or("done");
    const std::string name = printable(names[i]);
    if (verb == "up" && state != "ready") {
      say(context, name + ": " + (state == "down" ? "coming up" : printable(state)) +
                       " - `spark-stage wait " + name + "` ends when it is ready");
    } else {
      const auto warning = get_string(*result, "warning");
      say(context, name + ": " + printable(state) + (warning ? "; warning: " + *warning : ""));
    }
  }
  if (options.as_json) show_json(context, json::object{{"volumes", std::move(changed)}});
  return status;
}

Verb add_change(App& app, Verb group, const std::string& name, const std::string& summary,
                const std::string& examples, const std::shared_ptr<ChangeOptions>& options) {
  Verb verb = app.verb_of(group, name, summary, examples, [options, name](Context& context) {
    return change_volumes(context, *options, name);
  });
  verb.optional_argument("NAME", options->names, "volumes of the config; none: all of them");
  verb.flag("--json", options->as_json, "the volumes' states, as JSON");
  return verb;
}

}  // namespace

void add_volumes(App& app) {
  const auto as_json = std::make_shared<bool>(false);
  Verb group = app.verb("volumes", "list; bring up, down; publish, take, format (root)",
                        "  spark-stage volumes                        lists them\n"
                        "  sudo spark-stage volumes up datasets\n"
                        "  sudo spark-stage volumes down              all of them\n"
                        "  sudo spark-stage volumes down datasets models\n"
                        "  sudo spark-stage volumes publish models    to their readers\n"
                        "  sudo spark-stage volumes take models       from a host that is gone\n"
                        "  sudo spark-stage volumes format models     its first file system",
                        [as_json](Context& context) { return list(context, *as_json); });
  group.flag("--json", *as_json, "the list, as JSON");
  add_change(app, group, "up", "connect and mount",
             "  sudo spark-stage volumes up            also makes published ones writable\n"
             "  sudo spark-stage volumes up datasets && spark-stage wait datasets",
             std::make_shared<ChangeOptions>());
  const auto options = std::make_shared<ChangeOptions>();
  Verb down = add_change(app, group, "down", "unmount, disconnect, stay down; refused while in use",
                         "  sudo spark-stage volumes down datasets\n"
                         "  sudo spark-stage volumes down              all of them\n"
                         "  sudo spark-stage volumes down nas --force  its NFS server is gone for good",
                         options);
  down.flag("--force", options->force,
            "unmount an NFS volume whose server is gone, also while\nin use; writes that it has not received "
            "are lost");
  add_publish(app, group);
  add_take(app, group);
  add_format(app, group);
}

}  // namespace spark::cli
