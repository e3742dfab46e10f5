#include "daemon/config/plan.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>

#include "base/text.hpp"
#include "daemon/config/parse.hpp"

namespace spark::config {
namespace {

// The effect of a change of each key. A key not listed here requires a new connection, which applies every
// change.
struct Cost {
  std::string_view key;
  Action action;
};
constexpr std::array kCosts = {
    Cost{"reconnect_delay", Action::SetLive},
    Cost{"controller_loss", Action::SetLive},
    Cost{"fast_fail", Action::SetLive},
    Cost{"on_loss", Action::SetLive},
    Cost{"io_policy", Action::SetLive},
    Cost{"target", Action::SetLive},  // its name only; the target's settings have keys of their own
    Cost{"filesystem", Action::Remount},
    Cost{"mount", Action::Remount},
    Cost{"access", Action::Remount},
    Cost{"fence", Action::Remount},
    Cost{"options", Action::Remount},
};

Action cost_of(std::string_view key) {
  const auto* found = std::ranges::find(kCosts, key, &Cost::key);
  return found == kCosts.end() ? Action::Reconnect : found->action;
}

using Settings = std::map<std::string, std::string>;  // "digests.data" → "true"

void flatten(const json::object& object, const std::string& path, Settings& settings) {
  for (const auto& [name, value] : object) {
    const std::string key = (path.empty() ? "" : path + ".") + std::string(name);
    if (const json::object* inner = value.if_object()) {
      flatten(*inner, key, settings);
    } else {
      settings[key] = value.is_string() ? std::string(value.get_string()) : json::serialize(value);
    }
  }
}

Settings settings_of(const json::object& volume, const json::object& target) {
  Settings settings;
  flatten(volume, "", settings);
  flatten(target, "", settings);
  return settings;
}

struct Difference {
  std::string key, sentence;
};

std::vector<Difference> differences(const Settings& before, const Settings& after) {
  Settings keys = before;
  keys.insert(after.begin(), after.end());
  const auto value_in = [](const Settings& settings, const std::string& key) {
    const auto found = settings.find(key);
    return found == settings.end() ? std::string("none") : printable(found->second);
  };
  std::vector<Difference> found;
  for (const auto& [key, unused] : keys) {
    const std::string old_value = value_in(before, key), new_value = value_in(after, key);
    if (old_value == new_value) continue;
    found.push_back({key, printable(key) + ": " + old_value + " -> " + new_value});
  }
  return found;
}

// A file system that is new in the config, but already the mounted one, stays mounted.
bool is_what_is_mounted(const InForce& old, const Volume& wanted) {
  if (!wanted.nvme) return false;
  const auto fits = [](const std::string& asked, const std::string& is) {
    return asked.empty() || asked == is;
  };
  return fits(wanted.nvme->filesystem_type, old.filesystem_type) &&
         fits(wanted.nvme->filesystem_uuid, old.filesystem_uuid);
}

Step compare(const InForce& old, const Volume& wanted, const json::object& target) {
  Step step{wanted.name, Action::Nothing, {}, ""};
  for (const Difference& difference :
       differences(settings_of(old.settings, old.target), settings_of(to_json(wanted), target))) {
    const std::string top = difference.key.substr(0, difference.key.find('.'));
    const bool stays = top == "filesystem" && is_what_is_mounted(old, wanted);
    step.action = std::max(step.action, stays ? Action::SetLive : cost_of(top));
    step.changes.push_back(difference.sentence);
  }
  return step;
}

}  // namespace

const char* to_string(Action action) {
  constexpr std::array kWords = {"nothing", "set live", "remount", "reconnect", "add", "remove"};
  return kWords[static_cast<std::size_t>(action)];
}

bool takes_mount_away(Action action) {
  return takes_mount_away(to_string(action));
}

bool takes_mount_away(std::string_view action) {
  return std::ranges::any_of(std::array{Action::Remount, Action::Reconnect, Action::Remove},
                             [&](Action one) { return action == to_string(one); });
}

std::vector<Step> plan_volumes(const std::vector<InForce>& in_force, const Config& wanted) {
  std::vector<Step> steps;
  for (const Volume& volume : wanted.volumes) {
    const auto old = std::ranges::find(in_force, volume.name, &InForce::volume);
    if (old == in_force.end()) {
      steps.push_back({volume.name, Action::Add, {}, ""});
      continue;
    }
    json::object target;
    if (volume.nvme) target = to_json(wanted.targets.at(volume.nvme->target));
    steps.push_back(compare(*old, volume, target));
  }
  for (const InForce& old : in_force) {
    if (find_volume(wanted, old.volume) == nullptr) steps.push_back({old.volume, Action::Remove, {}, ""});
  }
  return steps;
}

std::vector<std::string> changed_settings(const json::object& in_force, const Config& wanted) {
  const auto settings = [](const json::object& shown) {
    Settings flat;
    for (const char* section : {"cache", "datasets", "outputs", "fleet", "metrics"}) {
      if (const json::object* settings = get_object(shown, section)) flatten(*settings, section, flat);
    }
    return flat;
  };
  std::vector<std::string> sentences;
  for (Difference& difference : differences(settings(in_force), settings(to_json(wanted)))) {
    if (difference.key == "cache.path")
      difference.sentence += "; the copies are there once `sudo spark-stage cache move " +
                             printable(wanted.cache.path.native()) + "` has run";
    sentences.push_back(std::move(difference.sentence));
  }
  return sentences;
}

json::object to_json(const Plan& plan) {
  json::array volumes;
  for (const Step& step : plan.volumes) {
    volumes.push_back(json::object{{"name", step.volume},
                                   {"action", to_string(step.action)},
                                   {"changes", json::value_from(step.changes)},
                                   {"refused", or_null(printable(step.refused))}});
  }
  return {{"volumes", std::move(volumes)}, {"settings", json::value_from(plan.settings)}};
}

json::object to_json(const InForce& one) {
  return {{"volume", one.volume},
          {"settings", one.settings},
          {"target", one.target},
          {"filesystem_type", one.filesystem_type},
          {"filesystem_uuid", one.filesystem_uuid}};
}

InForce in_force_from_json(const json::object& object) {
  const auto text = [&](std::string_view key) { return get_text(object, key); };
  const auto part = [&](std::string_view key) {
    const json::object* found = get_object(object, key);
    return found == nullptr ? json::object{} : *found;
  };
  return {text("volume"), part("settings"), part("target"), text("filesystem_type"), text("filesystem_uuid")};
}

}  // namespace spark::config
