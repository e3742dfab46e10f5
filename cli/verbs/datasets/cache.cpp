#include "base/file.hpp"
#include "base/text.hpp"
#include "cli/client/api.hpp"
#include "cli/job.hpp"
#include "cli/say.hpp"
#include "cli/verbs/datasets/verbs.hpp"

namespace spark::cli {
namespace {

struct CacheOptions {
  std::string path;
  bool discards = false;
  bool forgets = false;
  bool deletes_copies = false;
  bool as_json = false;
};

std::string size_in(const json::object& object) {
  return format_bytes(get_count(object, "bytes"));
}

// The steps that are left for a person: the daemon changes no configuration.
void tell_next(Context& context, const std::string& path, const std::string& last) {
  say(context, "Next:");
  say(context, "  1. in " + printable(context.config_file) + ", set `cache: {path: " + path + "}`");
  say(context, "  2. sudo systemctl reload spark-staged");
  say(context, "  3. " + last);
}

void print_copies(Context& context, const json::object& done, const char* key, const std::string& what) {
  for (const json::object& one : objects_in(done, key)) {
    say(context, get_shown(one, "name") + ": " + what + ", " + size_in(one));
  }
}

void warn_of(Context& context, const json::object& done, const char* key, const std::string& begin) {
  for (const std::string& sentence : get_strings(done, key))
    warn(context, "spark-stage: " + begin + sentence);
}

void print_move(Context& context, const json::object& moved) {
  const std::string how = get_text(moved, "how");
  const std::string path = get_shown(moved, "path");
  const std::string from = get_shown(moved, "from");
  if (how == "renamed") {
    say(context, "The cache is in " + path + "; " + from + " is a link to it, so nothing has to wait.");
    tell_next(context, path, "sudo rm " + from);
  } else if (how == "copied") {
    const auto datasets = static_cast<std::size_t>(get_int(moved, "datasets").value_or(0));
    say(context, counted(datasets, "dataset") + " in " + path + ", each compared with its manifest; " +
                     size_in(moved) + " copied now. " + from + " is still in use.");
    print_copies(context, moved, "deleted", "an earlier copy in " + path + " is deleted");
    warn_of(context, moved, "left", "not copied: ");
    warn_of(context, moved, "kept", "");
    tell_next(context, path,
              "sudo spark-stage cache move " + path + "    again: it deletes the copies in " + from);
  } else if (how == "old deleted") {
    print_copies(context, moved, "brought", "only " + from + " had it, so it is copied too");
    print_copies(context, moved, "deleted", "no sound copy is left; the damaged one is deleted");
    say(context, "The cache is in " + path + "; the copies in " + from + " are deleted, " + size_in(moved) +
                     " freed.");
  } else if (how == "old absent") {
    say(context, "The cache is in " + path + ". " + from +
                     " has nothing of it now: if its drive is not mounted, mount it and repeat this, and the "
                     "copies there are deleted. Else nothing is left to do.");
  } else {
    say(context, "The cache is in " + path + " already.");
  }
}

Result<int> move(Context& context, const CacheOptions& options) {
  const auto path = absolute_path(options.path);
  if (!path) return path.take_error();
  const json::object wanted{{"path", path->native()}, {"discard", options.discards}};
  const auto moved = run_job(context, {"POST", "/v1/cache/move", json::serialize(wanted)});
  if (!moved) return moved.take_error();
  if (options.as_json) return show_json(context, *moved);
  print_move(context, *moved);
  return 0;
}

Result<int> reset(Context& context, const CacheOptions& options) {
  const json::object wish{{"forget", options.forgets}, {"delete_copies", options.deletes_copies}};
  const auto done = run_job(context, {"POST", "/v1/cache/reset", json::serialize(wish)});
  if (!done) return done.take_error();
  if (options.as_json) return show_json(context, *done);
  print_copies(context, *done, "forgotten", "forgotten");
  print_copies(context, *done, "deleted", "deleted");
  if (const auto aside = get_string(*done, "set_aside"))
    say(context, "The catalog could not be read: it is kept as " + printable(*aside) + ".");
  say(context, "The cache " + get_shown(*done, "path") + " is usable; `spark-stage ls` shows what is in it.");
  return 0;
}

}  // namespace

void add_cache(App& app) {
  const auto options = std::make_shared<CacheOptions>();
  Verb group = app.group("cache", "move the cache, or reset it after a drive was replaced",
                         "  sudo spark-stage cache move /scratch/cache\n"
                         "  sudo spark-stage cache reset");
  Verb move_verb = app.verb_of(group, "move", "take the copies to another folder or drive",
                               "  sudo spark-stage cache move /scratch/cache\n\n"
                               "On one file system the folder is renamed, and the old path becomes a link.\n"
                               "Else each copy is copied and compared; the old ones stay in use until the\n"
                               "configuration names the new folder. The same command again then deletes\n"
                               "them, once it has copied what only they have. It may be interrupted and\n"
                               "repeated at any time.",
                               [options](Context& context) { return move(context, *options); });
  move_verb.argument("PATH", options->path, "the new folder: empty, or not there yet");
  move_verb.flag("--discard", options->discards, "delete also last copies that are damaged");
  move_verb.flag("--json", options->as_json, "the result, as JSON");
  Verb reset_verb =
      app.verb_of(group, "reset", "forget copies of a drive that was replaced or emptied",
                  "  sudo spark-stage cache reset\n"
                  "  sudo spark-stage cache reset --forget\n\n"
                  "Without an option it rebuilds a damaged catalog, and else names the copies that\n"
                  "it would forget or delete, and does nothing. Copies in the cache's folder that\n"
                  "the catalog does not know are entered.",
                  [options](Context& context) { return reset(context, *options); });
  reset_verb.flag("--forget", options->forgets, "forget copies that are gone with their drive");
  reset_verb.flag("--delete-copies", options->deletes_copies, "delete all copies of a usable cache");
  reset_verb.flag("--json", options->as_json, "the result, as JSON");
}

}  // namespace spark::cli
