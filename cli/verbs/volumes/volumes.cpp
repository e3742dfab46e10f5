#include "base/text.hpp"
#include "cli/client/api.hpp"
#include "cli/job.hpp"
#include "cli/say.hpp"
#include "cli/verbs/volumes/verbs.hpp"

namespace spark::cli {
namespace {

Result<std::vector<std::string>> all_volumes(Context& context) {
  const auto status = call(*context.client, {"GET", "/v1/status", {}});
  if (!status) return status.take_error();
  std::vector<std::string> names;
  const json::array* volumes = get_array(*status, "volumes");
  for (std::size_t i = 0; volumes != nullptr && i < volumes->size(); ++i) {
    const json::object* volume = (*volumes)[i].if_object();
    if (const auto name = volume != nullptr ? get_string(*volume, "name") : std::nullopt)
      names.push_back(*name);
  }
  if (names.empty())
    return fail(Errc::NotFound, "no volumes are configured", "see 'spark-stage config show'");
  return names;
}

// Begins all, then follows each: one slow volume holds up none of the others. The first failure is the
// status; further ones are printed as well.
Result<int> change_volumes(Context& context, std::vector<std::string> names, const std::string& verb) {
  if (names.empty()) {
    auto all = all_volumes(context);
    if (!all) return all.take_error();
    names = std::move(*all);
  }
  context.catch_interrupts();
  std::vector<Result<Job>> jobs;
  const std::string body = verb == "down" ? json::serialize(json::object{{"by", context.person}}) : "";
  for (const std::string& name : names) {
    jobs.push_back(start_job(context, {"POST", "/v1/volumes/" + percent_encoded(name) + "/" + verb, body}));
  }
  int status = 0;
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
    const std::string state = get_string(*result, "state").value_or("done");
    const bool is_under_way = verb == "up" && state != "ready";
    say(context,
        printable(names[i]) + ": " + printable(state) +
            (is_under_way ? " - 'spark-stage wait " + printable(names[i]) + "' waits until it is ready"
                          : ""));
  }
  return status;
}

void add_change(App& app, Verb group, const std::string& name, const std::string& summary,
                const std::string& examples) {
  const auto names = std::make_shared<std::vector<std::string>>();
  Verb verb = app.verb_of(group, name, summary, examples,
                          [names, name](Context& context) { return change_volumes(context, *names, name); });
  verb.optional_argument("NAME", *names, "volumes of the config; none: all of them");
}

}  // namespace

void add_volumes(App& app) {
  Verb group = app.group("volumes", "bring volumes up, down; publish, take, format (root)",
                         "  sudo spark-stage volumes up datasets\n"
                         "  sudo spark-stage volumes down              all of them\n"
                         "  sudo spark-stage volumes down datasets models\n"
                         "  sudo spark-stage volumes publish models    to their readers\n"
                         "  sudo spark-stage volumes take models       from a host that is gone\n"
                         "  sudo spark-stage volumes format models     its first file system");
  add_change(app, group, "up", "connect and mount",
             "  sudo spark-stage volumes up            also makes published ones writable\n"
             "  sudo spark-stage volumes up datasets && spark-stage wait datasets");
  add_change(app, group, "down", "unmount, disconnect, stay down; refused while in use",
             "  sudo spark-stage volumes down datasets\n"
             "  sudo spark-stage volumes down              all of them");
  add_publish(app, group);
  add_take(app, group);
  add_format(app, group);
}

}  // namespace spark::cli
