// Completion for a shell's Tab key. configs/completions/ call this, so that they know of no verb or option.
#include <set>

#include "base/text.hpp"
#include "bench/report/run_folder.hpp"
#include "cli/client/api.hpp"
#include "cli/verbs/bench/bench.hpp"
#include "cli/verbs/verbs.hpp"
#include "daemon/config/parse.hpp"

namespace spark::cli {
namespace {

constexpr char kFiles[] = ":files";  // no name of ours begins with a colon

void add_keys(const json::object* object, std::set<std::string>& names) {
  if (object == nullptr) return;
  for (const auto& member : *object) names.insert(std::string(member.key()));
}

// Of the configuration that is in force; without a daemon, of the file.
json::object configuration(Context& context) {
  const auto shown = call(*context.client, {"GET", "/v1/config", ""});
  if (shown) return *shown;
  const auto loaded = config::load(context.config_file);
  return loaded ? config::to_json(*loaded) : json::object{};
}

std::set<std::string> configured(Context& context, std::string_view section) {
  std::set<std::string> names;
  const json::object config = configuration(context);
  add_keys(get_object(config, section), names);
  return names;
}

std::set<std::string> peers(Context& context) {
  std::set<std::string> names;
  const json::object config = configuration(context);
  const json::object* fleet = get_object(config, "fleet");
  if (fleet != nullptr) add_keys(get_object(*fleet, "peers"), names);
  return names;
}

std::set<std::string> listed(Context& context, bool leases) {
  std::set<std::string> names;
  const auto answer = call(*context.client, {"GET", "/v1/datasets", ""});
  if (!answer) return names;
  for (const json::object& dataset : objects_in(*answer, "datasets")) {
    const auto name = get_string(dataset, "name");
    if (!leases && name) names.insert(*name);
    for (const json::object& lease : objects_in(dataset, "leases"))
      if (const auto id = get_string(lease, "id"); leases && id) names.insert(*id);
  }
  return names;
}

std::set<std::string> running_jobs(Context& context) {
  std::set<std::string> ids;
  const auto answer = call(*context.client, {"GET", "/v1/jobs", ""});
  if (!answer) return ids;
  for (const json::object& job : objects_in(*answer, "jobs"))
    if (get_string(job, "state") == "running") ids.insert(get_text(job, "id"));
  return ids;
}

// A run may be named by a file too.
std::set<std::string> kept_runs(Context& context) {
  std::set<std::string> names = {"last", kFiles};
  for (const bench::RunEntry& run : bench::list_runs(runs_folder(context, ""))) names.insert(run.id);
  return names;
}

std::set<std::string> arguments_of(Context& context, const std::string& verb) {
  if (verb == "wait" || verb == "status" || verb.starts_with("volumes "))
    return configured(context, "volumes");
  if (verb == "latest") return configured(context, "outputs");
  if (verb == "stage" || verb == "prefetch" || verb == "run") return configured(context, "datasets");
  if (verb == "verify" || verb == "evict" || verb == "drop" || verb == "scrub") return listed(context, false);
  if (verb == "release") return listed(context, true);
  if (verb == "fleet test") return peers(context);
  if (verb == "cancel" || verb == "wait --job") return running_jobs(context);
  if (verb == "bench report" || verb == "bench compare" || verb == "bench merge") return kept_runs(context);
  if (verb == "stage-out") {
    auto names = configured(context, "outputs");
    names.insert(kFiles);
    return names;
  }
  if (verb == "copy" || verb == "cache move" || verb == "bench" || verb == "config check" ||
      verb == "config plan")
    return {kFiles};
  return {};
}

// The command line that is being typed may name another daemon or configuration.
void heed_options(Context& context) {
  const auto& words = context.command;
  for (std::size_t i = 0; i + 2 < words.size() && words[i] != "--"; ++i) {
    if (words[i] == "--config") context.config_file = words[i + 1];
    if (words[i] == "--socket") context.client = context.make_client(words[i + 1]);
  }
}

Result<int> complete(Context& context, const App& app) {
  heed_options(context);
  const Completion completion = app.complete(context.command);
  for (const std::string& word : completion.words) context.out << word << "\n";
  for (const std::string& name : arguments_of(context, completion.verb))
    context.out << printable(name) << "\n";
  if (completion.is_file) context.out << kFiles << "\n";
  return 0;
}

}  // namespace

void add_complete(App& app) {
  app.hide(app.verb("complete", "words that may stand last, for shells",
                    "  spark-stage complete -- volumes u",
                    [&app](Context& context) { return complete(context, app); }));
}

}  // namespace spark::cli
