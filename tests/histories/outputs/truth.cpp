#include "tests/histories/outputs/truth.hpp"

#include <algorithm>

namespace spark::histories {

void Truth::complete_now(std::size_t host, const std::string& name, const Content& content, SteadyTime now) {
  Save& save = here[host][name];
  save.state = Save::State::Complete;
  save.done = save.changed = now;
  touched.erase(name);
  remnants.erase(name);
  done[name] = now;
  complete[name].push_back(content);
}

void Truth::renew(std::size_t host, const std::string& name, const Content& content, SteadyTime now) {
  Save& save = here[host][name];
  save.changed = now;
  touched.insert(name);
  complete[name].push_back(content);
}

bool Truth::is_whole(std::size_t host, const std::string& name, bool has_shards) const {
  const auto own = here[host].find(name);
  if (own == here[host].end() || own->second.state != Save::State::Complete) return false;
  return !has_shards || std::ranges::all_of(here, [&](const Saves& saves) {
    const auto other = saves.find(name);
    return other != saves.end() && other->second.state == Save::State::Complete &&
           other->second.attempt == own->second.attempt;
  });
}

std::uint64_t Truth::step_of(const std::string& name) const {
  const auto found = steps.find(name);
  return found == steps.end() ? 0 : found->second;
}

bool Truth::is_complete(const std::string& name, const Content& content) const {
  const auto known = complete.find(name);
  return known != complete.end() && std::ranges::find(known->second, content) != known->second.end();
}

bool Truth::is_after(const Save& save, const std::string& other) const {
  const auto known = done.find(other);
  // Nobody can know it then.
  const bool is_clear = last_clock_change == SteadyTime() && !touched.contains(other);
  return is_clear && known != done.end() && save.done > known->second;
}

bool Truth::is_known_to_be_after(std::size_t host, const std::string& name, const std::string& other) const {
  const Save& save = here[host].at(name);
  const auto published = sent.find({host, name});
  const bool was_sent = published != sent.end() && published->second >= save.done;
  return is_after(save, other) && (!was_sent || here[host].contains(other));
}

std::optional<std::string> Truth::highest_in(const Listing& listing, const std::string& form) const {
  std::optional<std::string> highest;
  for (const auto& [name, content] : listing) {
    if (!is_complete(name, content) || (!form.empty() && form_in_short(name) != form)) continue;
    if (!highest || step_of(name) > step_of(*highest)) highest = name;
  }
  return highest;
}

std::string form_in_short(const std::string& name) {
  std::string form = name;
  std::erase_if(form, [](char c) { return c >= '0' && c <= '9'; });
  return form.empty() ? "N" : form;
}

std::string to_string(Save::State state) {
  switch (state) {
    case Save::State::Saving:
      return "not finished yet";
    case Save::State::Complete:
      return "complete";
    case Save::State::Torn:
      return "torn: its save was interrupted";
    case Save::State::Discarded:
      return "a remnant of the job's own rotation";
    case Save::State::Unclear:
      return "complete, but changed by hand";
  }
  return "";
}

}  // namespace spark::histories
